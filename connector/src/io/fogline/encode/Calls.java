package io.fogline.encode;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Columns that are calls of static methods, made by the code that Spark generates. */
final class Calls {
    private Calls() {}

    /** The method never returns null. {@code nulls}: it is not called with null, which gives null. */
    static Column of(Class<?> type, String method, DataType result, boolean nulls, Column... arguments) {
        List<Expression> given = new ArrayList<>();
        for (Column argument : arguments) {
            given.add(ExpressionUtils.expression(argument));
        }
        return ExpressionUtils.column(new StaticInvoke(
                type, result, method, seq(given), seq(List.of()), nulls, false, true, Option.empty()));
    }

    private static <T> Seq<T> seq(List<T> items) {
        return CollectionConverters.asScala(items).toSeq();
    }
}
