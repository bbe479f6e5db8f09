package io.fogline.log;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/** Looks into logs from the command line, appends to them and repairs them. */
public final class LogTool {
    private static final String USAGE = """
            usage: LogTool COMMAND
              cat FOLDER [FROM [TO]]               every record: topic, tab, payload, newline
              follow FOLDER                        the same, and then what is committed from now on
              check FOLDER... [--from=POSITION]    reads everything and says what is there
              splits FOLDER BYTES                  frames at which the log divides into such parts
              sources FOLDER                       the last epoch of every job that wrote to it
              append FOLDER TOPIC [SOURCE EPOCH]   one commit of lines from standard input
              repair FOLDER...                     what opening for writing does
              folder ROOT TOPIC                    the folder of a topic's log""";
    private static final int PAUSE_MS = 10;
    private static final String FROM = "--from=";

    private LogTool() {}

    public static void main(String[] args) throws IOException, InterruptedException {
        try {
            run(args);
        } catch (IndexOutOfBoundsException e) {
            System.err.println(USAGE);
            System.exit(2);
        } catch (LogException e) {
            System.err.println(told(e));
            System.exit(1);
        }
    }

    private static void run(String[] args) throws IOException, InterruptedException {
        Path folder = Path.of(args[1]);
        List<Path> folders = Arrays.stream(args).skip(1).map(Path::of).toList();
        switch (args[0]) {
            case "cat" -> cat(folder, number(args, 2, first(folder)), number(args, 3, committed(folder)));
            case "follow" -> follow(folder);
            case "check" -> checkAll(folders);
            case "splits" -> splits(folder, Long.parseLong(args[2]));
            case "sources" -> sources(folder);
            case "append" -> append(folder, args[2], number(args, 3, 0), number(args, 4, -1));
            case "repair" -> each(folders, LogTool::repair);
            case "folder" -> System.out.println(LogFolder.of(folder, args[2]));
            default -> throw new IndexOutOfBoundsException(args[0]);
        }
    }

    private interface Command {
        String run(Path folder) throws IOException;
    }

    /** One line per folder: what the command says, or what is wrong with the log. */
    private static void each(List<Path> folders, Command command) throws IOException {
        for (Path folder : folders) {
            try {
                System.out.println(command.run(folder));
            } catch (LogException e) {
                System.out.println(told(e));
            }
        }
    }

    private static void checkAll(List<Path> given) throws IOException {
        String last = given.get(given.size() - 1).toString();
        if (!last.startsWith(FROM)) {
            each(given, folder -> check(folder, first(folder)));
            return;
        }
        long from = Long.parseLong(last.substring(FROM.length()));
        each(given.subList(0, given.size() - 1), folder -> check(folder, from));
    }

    private static String told(LogException error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }

    private static long number(String[] args, int index, long otherwise) {
        return index < args.length ? Long.parseLong(args[index]) : otherwise;
    }

    private static long committed(Path folder) throws IOException {
        try (Committed committed = new Committed(folder)) {
            return committed.read();
        }
    }

    private static long first(Path folder) throws IOException {
        return Segments.first(folder, committed(folder));
    }

    private static PrintStream output() {
        return new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
    }

    private static void cat(Path folder, long from, long to) throws IOException {
        try (FrameReader reader = new FrameReader(folder, from, to);
                PrintStream out = output()) {
            print(reader, out);
        }
    }

    private static void print(FrameReader reader, PrintStream out) throws IOException {
        while (reader.next()) {
            out.write(reader.bytes(), reader.topicFrom(), reader.topicTo() - reader.topicFrom());
            out.write('\t');
            out.write(reader.bytes(), reader.from(), reader.to() + 1 - reader.from());
        }
        out.flush();
    }

    private static void follow(Path folder) throws IOException, InterruptedException {
        long read = first(folder);
        try (FrameReader reader = new FrameReader(folder, read, read);
                Committed committed = new Committed(folder);
                PrintStream out = output()) {
            while (!out.checkError()) {
                long now = committed.read();
                if (now > read) {
                    reader.extend(now);
                    print(reader, out);
                    read = now;
                }
                Thread.sleep(PAUSE_MS);
            }
        }
    }

    private static String check(Path folder, long from) throws IOException {
        long to = committed(folder);
        long frames = 0;
        long records = 0;
        long commits = 0;
        long started = System.nanoTime();
        try (FrameReader reader = new FrameReader(folder, from, to, true)) {
            while (reader.nextFrame()) {
                frames++;
                commits += reader.last() ? 1 : 0;
                while (reader.nextRecord()) {
                    records++;
                }
            }
            long millis = (System.nanoTime() - started) / 1_000_000;
            return String.format("from=%d to=%d commits=%d frames=%d records=%d skipped=%d lost=%d millis=%d",
                    from, to, commits, frames, records, reader.skipped(), reader.lost(), millis);
        }
    }

    private static void splits(Path folder, long bytes) throws IOException {
        long end = committed(folder);
        long at = first(folder);
        while (at < end) {
            System.out.println(at);
            at = Splits.at(folder, at, at + bytes, end);
        }
        System.out.println(end);
    }

    private static void sources(Path folder) throws IOException {
        for (Map.Entry<Long, Long> entry : Sources.until(folder, committed(folder)).entrySet()) {
            System.out.println(Long.toUnsignedString(entry.getKey()) + " " + entry.getValue());
        }
    }

    private static void append(Path folder, String topic, long source, long epoch) throws IOException {
        try (LogWriter writer = new LogWriter(folder, topic);
                Scanner lines = new Scanner(System.in, StandardCharsets.ISO_8859_1)) {
            lines.useDelimiter("\n");
            while (lines.hasNext()) {
                String line = lines.next();
                int tab = line.indexOf('\t');
                if (tab < 0) {
                    throw new LogException("a line has no tab between topic and payload");
                }
                byte[] bytes = line.getBytes(StandardCharsets.ISO_8859_1);
                writer.append(source, epoch, Arrays.copyOf(bytes, tab), bytes, tab + 1, bytes.length);
            }
            System.out.println(writer.commit());
        }
    }

    private static String repair(Path folder) throws IOException {
        try (LogWriter writer = new LogWriter(folder, Files.readString(folder.resolve("topic")))) {
            return "to=" + writer.position();
        }
    }
}
