package io.fogline.source;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The files behind option {@code path}: that file, or the visible files directly in that folder. */
final class InputFiles implements Store {
    private final Path path;
    private final boolean folder;
    private final boolean tail;
    private final Boundaries boundaries;

    InputFiles(SourceOptions options) {
        path = Path.of(options.path());
        tail = options.tail();
        boundaries = Boundaries.of(options.format());
        folder = Files.isDirectory(path);
        if (!folder && !Files.isRegularFile(path)) {
            throw new IllegalArgumentException("option path: there is no file or folder " + path);
        }
    }

    @Override
    public Listing list() {
        // The marker first: what it promises then holds for the sizes.
        boolean complete = !tail || Files.exists(path.resolveSibling(path.getFileName() + ".end"));
        SortedMap<String, Long> sizes = new TreeMap<>();
        try {
            if (folder) {
                addFolder(sizes);
            } else {
                sizes.put(path.getFileName().toString(), Files.size(path));
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot list " + path, e);
        }
        return new Listing(sizes, complete);
    }

    private void addFolder(SortedMap<String, Long> sizes) throws IOException {
        try (Stream<Path> entries = Files.list(path)) {
            for (Path entry : (Iterable<Path>) entries::iterator) {
                String name = entry.getFileName().toString();
                if (!name.startsWith("_") && !name.startsWith(".") && Files.isRegularFile(entry)) {
                    sizes.put(name, Files.size(entry));
                }
            }
        }
    }

    @Override
    public SortedMap<String, Long> firsts() {
        return new TreeMap<>();
    }

    @Override
    public long boundary(String file, long from, long wanted, long size, boolean complete) throws IOException {
        return boundaries.find(pathOf(file), from, wanted, size, complete);
    }

    @Override
    public String pathOf(String file) {
        return folder ? path.resolve(file).toString() : path.toString();
    }
}
