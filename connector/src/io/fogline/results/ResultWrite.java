package io.fogline.results;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** How one query writes: each task a sorted run, the driver all runs of a batch merged to the output. */
record ResultWrite(String output, String folder) implements RequiresDistributionAndOrdering {
    @Override
    public String description() {
        return "fogline-results " + output;
    }

    @Override
    public Distribution requiredDistribution() {
        return Distributions.unspecified();
    }

    /** Spark sorts each task's rows by this, on disk where they do not fit. */
    @Override
    public SortOrder[] requiredOrdering() {
        return Stream.of(ResultSink.SCHEMA.fieldNames())
                .map(name -> Expressions.sort(Expressions.column(name), SortDirection.ASCENDING))
                .toArray(SortOrder[]::new);
    }

    @Override
    public BatchWrite toBatch() {
        return new BatchWrite() {
            @Override
            public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
                String below = folder;
                return (partition, task) -> new RunWriter(below);
            }

            @Override
            public void commit(WriterCommitMessage[] messages) {
                ResultWrite.this.commit(messages);
            }

            @Override
            public void abort(WriterCommitMessage[] messages) {
                remove(runs(messages));
            }
        };
    }

    @Override
    public StreamingWrite toStreaming() {
        return new StreamingWrite() {
            @Override
            public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
                String below = folder;
                return (partition, task, epoch) -> new RunWriter(below);
            }

            @Override
            public void commit(long epoch, WriterCommitMessage[] messages) {
                ResultWrite.this.commit(messages);
            }

            @Override
            public void abort(long epoch, WriterCommitMessage[] messages) {
                remove(runs(messages));
            }
        };
    }

    private void commit(WriterCommitMessage[] messages) {
        List<Run> runs = runs(messages);
        try {
            ResultOutput.of(output).write(runs);
        } catch (IOException e) {
            throw new UncheckedIOException("results cannot be written: " + e.getMessage(), e);
        } finally {
            remove(runs);
        }
    }

    private static List<Run> runs(WriterCommitMessage[] messages) {
        List<Run> runs = new ArrayList<>();
        for (WriterCommitMessage message : messages) {
            if (message instanceof Run run) {
                runs.add(run);
            }
        }
        return runs;
    }

    private static void remove(List<Run> runs) {
        runs.forEach(Run::remove);
    }
}
