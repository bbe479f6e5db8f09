package io.fogline.decode;

/** {@code raw}: a message is a record of its own, whatever it holds; nothing in it is looked at. */
final class RawDecoder implements Decoder {
    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        out.add();
    }
}
