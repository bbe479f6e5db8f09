package io.fogline.log;

import io.fogline.files.StateFile;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What is known about the damage in a log: a small file for each place, in the folder {@code damage}. Where
 * a repairer works on the logs, a reader that meets damage waits for it before it goes on.
 */
final class DamageNotes {
    private static final String FOUND = "found";
    private static final String LOST = "lost";
    private static final String REPAIRED = "repaired";
    private static final Pattern STATE = Pattern.compile("\"state\": \"([a-z]+)\"");
    private static final Pattern ACKNOWLEDGED = Pattern.compile("\"acknowledged\": [0-9]+");
    private static final Pattern END = Pattern.compile("\"end\": ([0-9]+)");
    private static final Pattern NAME = Pattern.compile("[0-9]{20}");
    private static final int PAUSE_MS = 20;

    private final Path folder;
    private final Path notes;

    DamageNotes(Path log) {
        folder = log;
        notes = log.resolve("damage");
    }

    /** The file {@code committed} was damaged, and the log's end is found again. */
    void noteCommitted(long end) {
        Gap nothing = new Gap(end, end, 0, 0);
        Path note = notes.resolve(String.format("%020d.%s", end, Committed.NAME));
        note(note, nothing, Committed.NAME, "it was damaged: the end was found again", REPAIRED);
    }

    /**
     * Notes what a reader has met, unless it is known, and waits for a repairer if there is one. Whether it
     * is repaired now; {@code again}: it was said to be, but is not.
     */
    boolean settle(Gap gap, String reason, boolean again) throws IOException {
        Path note = path(gap.start());
        note(note, gap, "", reason, isRepaired() && !again ? FOUND : LOST);
        String state = state(note);
        while (state.equals(FOUND) && isRepaired()) {
            try {
                Thread.sleep(PAUSE_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LogException("interrupted while a repairer looks at " + note);
            }
            state = state(note);
        }
        if (state.equals(FOUND) || again && state.equals(REPAIRED)) {
            giveUp(note);
            return false;
        }
        return state.equals(REPAIRED);
    }

    private static synchronized void giveUp(Path note) throws IOException {
        String lost = STATE.matcher(text(note)).replaceFirst("\"state\": \"" + LOST + "\"");
        Disk.replace(note, StateFile.sealed(ACKNOWLEDGED.matcher(lost).replaceFirst("\"acknowledged\": 0")));
    }

    private Path path(long position) {
        return notes.resolve(String.format("%020d", position));
    }

    /** Notes it, unless that place is known; where nothing can be written, reading goes on all the same. */
    private void note(Path note, Gap gap, String file, String reason, String state) {
        if (Files.exists(note)) {
            return;
        }
        Path made = notes.resolve("." + UUID.randomUUID() + ".new");
        String text = String.format(
                "{\"position\": %d, \"end\": %d, \"records\": %d, \"reason\": \"%s\", \"state\": \"%s\","
                        + " \"found\": %d, \"acknowledged\": 0, \"file\": \"%s\"}%n",
                gap.start(), gap.end(), gap.records(), reason, state, System.currentTimeMillis(), file);
        try {
            Files.createDirectories(notes);
            Files.writeString(made, StateFile.sealed(text));
            Disk.sync(made);
            link(note, made);
        } catch (IOException e) {
            System.err.println("damage of " + folder + " at " + gap.start() + " is not noted: " + e);
        }
    }

    private static void link(Path note, Path made) throws IOException {
        try {
            Files.createLink(note, made);
        } catch (FileAlreadyExistsException e) {
            // Another reader was faster.
            return;
        } finally {
            Files.deleteIfExists(made);
        }
    }

    /** What is noted; a note that cannot be read says nothing. */
    private static String text(Path note) {
        try {
            return StateFile.text(note);
        } catch (IOException e) {
            return "";
        }
    }

    private static String state(Path note) {
        Matcher found = STATE.matcher(text(note));
        return found.find() ? found.group(1) : LOST;
    }

    /** Where known damage ends that {@code position} is in the middle of, -1 when there is none. */
    long endOfKnown(long position) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(notes)) {
            for (Path file : files) {
                String name = file.getFileName().toString();
                if (!NAME.matcher(name).matches() || Long.parseLong(name) >= position) {
                    continue;
                }
                Matcher end = END.matcher(text(file));
                if (end.find() && Long.parseLong(end.group(1)) > position && state(file).equals(LOST)) {
                    return Long.parseLong(end.group(1));
                }
            }
        } catch (NoSuchFileException e) {
            return Format.UNKNOWN;
        }
        return Format.UNKNOWN;
    }

    /** Whether somebody repairs the logs beside this one: then a file there is locked. */
    private boolean isRepaired() throws IOException {
        Path lock = folder.toAbsolutePath().getParent().resolve(".repairer").resolve("lock");
        synchronized (DamageNotes.class) {
            try (FileChannel channel = FileChannel.open(lock, StandardOpenOption.READ, StandardOpenOption.WRITE);
                    FileLock taken = channel.tryLock()) {
                return taken == null;
            } catch (OverlappingFileLockException e) {
                return true;
            } catch (NoSuchFileException e) {
                return false;
            }
        }
    }
}
