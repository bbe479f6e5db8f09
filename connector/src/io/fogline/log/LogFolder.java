package io.fogline.log;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Topics and the folders of their logs: every topic has one folder, no two topics share one. */
public final class LogFolder {
    private static final int LONGEST = 200;

    private LogFolder() {}

    /** The folder of a topic's log below the site's log folder. */
    public static Path of(Path root, String topic) {
        return root.resolve(name(topic));
    }

    static String name(String topic) {
        byte[] raw = topic.getBytes(StandardCharsets.UTF_8);
        StringBuilder name = new StringBuilder();
        for (byte b : raw) {
            if (isKept(b)) {
                name.append((char) b);
            } else {
                name.append(String.format("%%%02X", b));
            }
        }
        return name.length() <= LONGEST ? name.toString() : name.substring(0, LONGEST) + "~" + digest(raw);
    }

    private static boolean isKept(byte b) {
        return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-';
    }

    private static String digest(byte[] raw) {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(raw);
            return HexFormat.of().formatHex(sum).substring(0, 16);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
