package io.fogline.decode;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;

/**
 * {@code xml}: a message is one document and one record. Fields are the attributes and the child
 * elements of the root, by local name; deeper ones are reached by paths with dots. An element's value
 * is its text without blanks around it; an empty element is null. Document types are refused, so
 * there are no entities to expand and nothing is ever fetched.
 */
public final class XmlDecoder implements Decoder {
    private static final FieldTree NOTHING = new FieldTree();
    private static final int MAX_FIELDS = 100_000;

    private final FieldTree root;
    private final XMLInputFactory factory = XMLInputFactory.newDefaultFactory();
    private int fields;

    XmlDecoder(Layout layout) {
        root = layout.root();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty(XMLInputFactory.IS_REPLACING_ENTITY_REFERENCES, false);
        factory.setXMLResolver((publicId, systemId, base, namespace) -> new ByteArrayInputStream(new byte[0]));
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        // The JDK's parser would say so itself, but on standard error, once for every such message.
        if (!Bytes.isUtf8(bytes, from, to)) {
            throw new BadMessage("not UTF-8");
        }
        fields = 0;
        try {
            ByteArrayInputStream stream = new ByteArrayInputStream(bytes, from, to - from);
            XMLStreamReader reader = factory.createXMLStreamReader(stream, StandardCharsets.UTF_8.name());
            if ("1.1".equals(reader.getVersion())) {
                throw new BadMessage("not accepted: XML 1.1");
            }
            while (reader.getEventType() != XMLStreamConstants.START_ELEMENT) {
                checkedNext(reader);
            }
            element(reader, out.add(), -1, root, 0);
            while (reader.hasNext()) {
                checkedNext(reader);
            }
            reader.close();
        } catch (XMLStreamException e) {
            throw new BadMessage("not XML: " + oneLine(e.getMessage()));
        } catch (RuntimeException e) {
            // The JDK's parser answers some broken documents with exceptions of other kinds.
            throw new BadMessage("not XML: " + oneLine(String.valueOf(e)));
        }
    }

    private void element(XMLStreamReader reader, Record record, int slot, FieldTree tree, int depth)
            throws XMLStreamException, BadMessage {
        if (depth >= MAX_DEPTH) {
            throw new BadMessage("nested deeper than " + MAX_DEPTH);
        }
        checkName(reader.getLocalName());
        for (int i = 0; i < reader.getAttributeCount(); i++) {
            countField();
            checkName(reader.getAttributeLocalName(i));
            int entry = tree.find(reader.getAttributeLocalName(i));
            if (entry >= 0 && tree.slot(entry) >= 0) {
                store(record, tree.slot(entry), reader.getAttributeValue(i));
            }
        }
        StringBuilder text = slot < 0 ? null : new StringBuilder();
        boolean nested = false;
        for (int event = checkedNext(reader); event != XMLStreamConstants.END_ELEMENT; event = checkedNext(reader)) {
            if (event == XMLStreamConstants.START_ELEMENT) {
                nested = true;
                child(reader, record, tree, depth);
            } else if (text != null && reader.hasText() && event != XMLStreamConstants.COMMENT) {
                text.append(reader.getText());
            }
        }
        if (nested && slot >= 0) {
            record.set(slot, Record.OTHER);
        } else if (slot >= 0) {
            store(record, slot, text.toString().strip());
        }
    }

    private void child(XMLStreamReader reader, Record record, FieldTree tree, int depth)
            throws XMLStreamException, BadMessage {
        countField();
        int entry = tree.find(reader.getLocalName());
        FieldTree inner = entry < 0 || tree.child(entry) == null ? NOTHING : tree.child(entry);
        element(reader, record, entry < 0 ? -1 : tree.slot(entry), inner, depth + 1);
    }

    /** A bound for who keeps all fields, as gateways and the store do. */
    private void countField() throws BadMessage {
        if (++fields > MAX_FIELDS) {
            throw new BadMessage("more than " + MAX_FIELDS + " fields in one message");
        }
    }

    /** The JDK's parser lets a colon begin a name. */
    private static void checkName(String local) throws BadMessage {
        if (local.startsWith(":")) {
            throw new BadMessage("not XML: a prefix that is not declared");
        }
    }

    private static void store(Record record, int slot, String text) {
        if (text.isEmpty()) {
            record.set(slot, Record.NULL);
        } else {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            record.set(slot, Record.TEXT, bytes, 0, bytes.length);
        }
    }

    private static int checkedNext(XMLStreamReader reader) throws XMLStreamException, BadMessage {
        int event = reader.next();
        if (event == XMLStreamConstants.DTD || event == XMLStreamConstants.ENTITY_REFERENCE) {
            throw new BadMessage("not accepted: XML with a document type or entities");
        }
        return event;
    }

    private static String oneLine(String text) {
        return text.replaceAll("\\s+", " ");
    }
}
