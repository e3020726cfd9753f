import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.HexFormat;

import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.variant.Variant;

/**
 * Prints what parquet-java finds in the VARIANT column `p_variant` of files, put together where members
 * are stored apart: a line "ID VALUE" for each row, in the letters of judge_variant_java.py.
 *
 * <p>VariantDump OUTPUT FILE...
 */
public final class VariantDump {
    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void say(Variant value, StringBuilder out) {
        switch (value.getType()) {
            case NULL -> out.append('n');
            case BOOLEAN -> out.append(value.getBoolean() ? 't' : 'f');
            case BYTE -> out.append('i').append(value.getByte());
            case SHORT -> out.append('i').append(value.getShort());
            case INT -> out.append('i').append(value.getInt());
            case LONG -> out.append('i').append(value.getLong());
            case DECIMAL4, DECIMAL8, DECIMAL16 -> out.append('i').append(value.getDecimal().toPlainString());
            case DOUBLE -> out.append('d').append(
                    String.format("%016x", Double.doubleToRawLongBits(value.getDouble())));
            case STRING -> out.append('s').append(hex(value.getString()));
            case ARRAY -> {
                out.append('[');
                for (int i = 0; i < value.numArrayElements(); i++) {
                    say(value.getElementAtIndex(i), out);
                    out.append(',');
                }
                out.append(']');
            }
            case OBJECT -> {
                out.append('{');
                for (int i = 0; i < value.numObjectElements(); i++) {
                    Variant.ObjectField field = value.getFieldAtIndex(i);
                    out.append(hex(field.key)).append(':');
                    say(field.value, out);
                    out.append(',');
                }
                out.append('}');
            }
            default -> throw new IllegalStateException("a value of type " + value.getType());
        }
    }

    private static void dump(String path, PrintStream out) throws IOException {
        HadoopInputFile file = HadoopInputFile.fromPath(
                new org.apache.hadoop.fs.Path(Paths.get(path).toUri()), new Configuration());
        try (ParquetReader<GenericRecord> reader = AvroParquetReader.<GenericRecord>builder(file).build()) {
            for (GenericRecord row = reader.read(); row != null; row = reader.read()) {
                StringBuilder text = new StringBuilder().append(row.get("id")).append(' ');
                GenericRecord variant = (GenericRecord) row.get("p_variant");
                if (variant == null)
                    text.append('-');
                else
                    say(new Variant((ByteBuffer) variant.get("value"), (ByteBuffer) variant.get("metadata")), text);
                out.println(text);
            }
        }
    }

    public static void main(String[] args) throws IOException {
        try (PrintStream out = new PrintStream(new BufferedOutputStream(
                java.nio.file.Files.newOutputStream(Paths.get(args[0]))), false, StandardCharsets.UTF_8)) {
            for (int i = 1; i < args.length; i++)
                dump(args[i], out);
        }
    }
}
