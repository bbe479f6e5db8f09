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

    private final FieldTree root;
    private final XMLInputFactory factory = XMLInputFactory.newDefaultFactory();

    XmlDecoder(Layout layout) {
        root = layout.root();
        factory.setProperty(XMLInputFactory.SUPPORT_DTD, false);
        factory.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, false);
        factory.setProperty(XMLInputFactory.IS_REPLACING_ENTITY_REFERENCES, false);
        factory.setXMLResolver((publicId, systemId, base, namespace) -> new ByteArrayInputStream(new byte[0]));
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        try {
            ByteArrayInputStream stream = new ByteArrayInputStream(bytes, from, to - from);
            XMLStreamReader reader = factory.createXMLStreamReader(stream, StandardCharsets.UTF_8.name());
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

    private static void element(XMLStreamReader reader, Record record, int slot, FieldTree tree, int depth)
            throws XMLStreamException, BadMessage {
        if (depth >= MAX_DEPTH) {
            throw new BadMessage("nested deeper than " + MAX_DEPTH);
        }
        for (int i = 0; i < reader.getAttributeCount(); i++) {
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

    private static void child(XMLStreamReader reader, Record record, FieldTree tree, int depth)
            throws XMLStreamException, BadMessage {
        int entry = tree.find(reader.getLocalName());
        FieldTree inner = entry < 0 || tree.child(entry) == null ? NOTHING : tree.child(entry);
        element(reader, record, entry < 0 ? -1 : tree.slot(entry), inner, depth + 1);
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
