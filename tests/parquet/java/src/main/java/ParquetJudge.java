import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.convert.GroupRecordConverter;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.internal.column.columnindex.BoundaryOrder;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveComparator;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/**
 * Judges Parquet files of ours by what parquet-java finds in them: every value, null, type and field
 * id; statistics, column index and offset index against the values; and filters, which parquet-java
 * answers with the help of all of these.
 *
 * <p>ParquetJudge DIRECTORY, which holds what parquet_random wrote. Ends with "N passed, N failed".
 */
public final class ParquetJudge {
    /** A column as its expectation says; see parquet_random.c. */
    private static final class Expected {
        String type;
        int fieldId;
        String name;
        final List<byte[]> values = new ArrayList<>(); // PLAIN, null for a null
    }

    private static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failed(String text) {
            super(text);
        }
    }

    private static void check(boolean condition, String text, Object... args) {
        if (!condition) {
            throw new Failed(String.format(text, args));
        }
    }

    private static byte[] cell(String text) {
        return text.equals("-") ? null : text.equals(".") ? new byte[0] : HexFormat.of().parseHex(text);
    }

    private static List<Expected> readExpectation(Path path, List<Integer> groups) throws IOException {
        List<Expected> columns = new ArrayList<>();
        for (String line : Files.readAllLines(path)) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "codec":
                case "footer":
                case "stats":
                    break;
                case "groups":
                    for (int i = 1; i < words.length; i++) {
                        groups.add(Integer.parseInt(words[i]));
                    }
                    break;
                case "column":
                    Expected column = new Expected();
                    column.type = words[1];
                    column.fieldId = Integer.parseInt(words[2]);
                    column.name = new String(cell(words[3]), StandardCharsets.UTF_8);
                    columns.add(column);
                    break;
                default:
                    columns.get(columns.size() - 1).values.add(cell(line));
            }
        }
        return columns;
    }

    private static LogicalTypeAnnotation annotation(String type) {
        if (type.startsWith("decimal")) {
            String[] digits = type.substring(8, type.length() - 1).split(",");
            return LogicalTypeAnnotation.decimalType(Integer.parseInt(digits[1]), Integer.parseInt(digits[0]));
        }
        switch (type) {
            case "int8":
            case "int16":
            case "int32":
            case "int64":
                return LogicalTypeAnnotation.intType(Integer.parseInt(type.substring(3)), true);
            case "uint8":
            case "uint16":
            case "uint32":
            case "uint64":
                return LogicalTypeAnnotation.intType(Integer.parseInt(type.substring(4)), false);
            case "date":
                return LogicalTypeAnnotation.dateType();
            case "time":
                return LogicalTypeAnnotation.timeType(false, TimeUnit.MICROS);
            case "timestamp":
            case "timestamp_s":
                return LogicalTypeAnnotation.timestampType(false, TimeUnit.MICROS);
            case "timestamp_ms":
                return LogicalTypeAnnotation.timestampType(false, TimeUnit.MILLIS);
            case "timestamp_ns":
                return LogicalTypeAnnotation.timestampType(false, TimeUnit.NANOS);
            case "timestamptz":
                return LogicalTypeAnnotation.timestampType(true, TimeUnit.MICROS);
            case "varchar":
                return LogicalTypeAnnotation.stringType();
            case "json":
                return LogicalTypeAnnotation.jsonType();
            case "uuid":
                return LogicalTypeAnnotation.uuidType();
            default:
                return null;
        }
    }

    private static void judgeSchema(MessageType schema, List<Expected> columns) {
        check(schema.getFieldCount() == columns.size(), "%d columns", schema.getFieldCount());
        for (int i = 0; i < columns.size(); i++) {
            PrimitiveType type = schema.getType(i).asPrimitiveType();
            Expected column = columns.get(i);
            LogicalTypeAnnotation want = annotation(column.type);
            LogicalTypeAnnotation got = type.getLogicalTypeAnnotation();
            check(type.getName().equals(column.name), "name %s", type.getName());
            check(type.getId().intValue() == column.fieldId, "field id %s", type.getId());
            check(type.isRepetition(Type.Repetition.OPTIONAL), "repetition %s", type.getRepetition());
            check(want == null ? got == null : want.equals(got), "%s is %s", column.type, got);
        }
    }

    private static byte[] little(int size, long value) {
        ByteBuffer bytes = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value);
        return Arrays.copyOf(bytes.array(), size);
    }

    /** The reader's current value as PLAIN lays it out. */
    private static byte[] plain(ColumnReader reader, PrimitiveType type) {
        switch (type.getPrimitiveTypeName()) {
            case BOOLEAN:
                return new byte[] {(byte) (reader.getBoolean() ? 1 : 0)};
            case INT32:
                return little(4, reader.getInteger());
            case INT64:
                return little(8, reader.getLong());
            case FLOAT:
                return little(4, Float.floatToRawIntBits(reader.getFloat()));
            case DOUBLE:
                return little(8, Double.doubleToRawLongBits(reader.getDouble()));
            default:
                return reader.getBinary().getBytes();
        }
    }

    /** A PLAIN value as parquet-java's comparators take it. */
    private static Object boxed(byte[] plain, PrimitiveType type) {
        ByteBuffer bytes = ByteBuffer.wrap(plain).order(ByteOrder.LITTLE_ENDIAN);
        switch (type.getPrimitiveTypeName()) {
            case BOOLEAN:
                return plain[0] != 0;
            case INT32:
                return bytes.getInt();
            case INT64:
                return bytes.getLong();
            case FLOAT:
                return bytes.getFloat();
            case DOUBLE:
                return bytes.getDouble();
            default:
                return Binary.fromConstantByteArray(plain);
        }
    }

    private static boolean isNan(Object value) {
        return value instanceof Float && ((Float) value).isNaN()
                || value instanceof Double && ((Double) value).isNaN();
    }

    private static void judgeValues(PageReadStore pages, MessageType schema, String createdBy,
            List<Expected> columns, int first, int rows) {
        ColumnReadStoreImpl store = new ColumnReadStoreImpl(pages, new GroupRecordConverter(schema)
                .getRootConverter(), schema, createdBy);
        for (Expected column : columns) {
            ColumnDescriptor descriptor = schema.getColumnDescription(new String[] {column.name});
            ColumnReader reader = store.getColumnReader(descriptor);
            check(reader.getTotalValueCount() == rows, "%d values", reader.getTotalValueCount());
            for (int i = 0; i < rows; i++) {
                byte[] want = column.values.get(first + i);
                byte[] got = null;
                if (reader.getCurrentDefinitionLevel() == 1) {
                    got = plain(reader, descriptor.getPrimitiveType());
                }
                check(Arrays.equals(want, got), "%s row %d is not the value expected", column.type, first + i);
                reader.consume();
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static int compare(PrimitiveType type, Object a, Object b) {
        return ((PrimitiveComparator<Object>) (PrimitiveComparator<?>) type.comparator()).compare(a, b);
    }

    private static void judgeBounds(String what, PrimitiveType type, List<byte[]> values, Object low, Object high) {
        for (byte[] plain : values) {
            if (plain == null) {
                continue;
            }
            Object value = boxed(plain, type);
            check(!isNan(value), "%s: bounds beside a NaN", what);
            check(low == null || compare(type, low, value) <= 0, "%s: a value below min", what);
            check(high == null || compare(type, high, value) >= 0, "%s: a value above max", what);
        }
    }

    private static void judgeStatistics(ColumnChunkMetaData chunk, List<byte[]> values) {
        Statistics<?> stats = chunk.getStatistics();
        long nulls = values.stream().filter(v -> v == null).count();
        check(stats.isNumNullsSet() && stats.getNumNulls() == nulls, "%d nulls, not %d", stats.getNumNulls(), nulls);
        if (stats.hasNonNullValue()) {
            judgeBounds("chunk", chunk.getPrimitiveType(), values, stats.genericGetMin(), stats.genericGetMax());
        }
    }

    private static Object boundOf(ByteBuffer bytes, PrimitiveType type) {
        byte[] plain = new byte[bytes.remaining()];
        bytes.duplicate().get(plain);
        return boxed(plain, type);
    }

    private static void judgeIndexes(ParquetFileReader reader, ColumnChunkMetaData chunk, List<byte[]> values)
            throws IOException {
        PrimitiveType type = chunk.getPrimitiveType();
        OffsetIndex offsets = reader.readOffsetIndex(chunk);
        ColumnIndex index = reader.readColumnIndex(chunk);
        check(offsets != null, "no offset index");
        int pages = offsets.getPageCount();
        Object lastLow = null;
        Object lastHigh = null;
        for (int page = 0; page < pages; page++) {
            int from = (int) offsets.getFirstRowIndex(page);
            int to = (int) offsets.getLastRowIndex(page, values.size()) + 1;
            List<byte[]> mine = values.subList(from, to);
            long nulls = mine.stream().filter(v -> v == null).count();
            check(from < to, "an empty page");
            if (index == null) {
                continue;
            }
            check(index.getNullPages().size() == pages, "pages of the column index");
            check(index.getNullCounts().get(page) == nulls, "null count of a page");
            check(index.getNullPages().get(page) == (nulls == mine.size()), "null page");
            if (index.getNullPages().get(page)) {
                continue;
            }
            Object low = boundOf(index.getMinValues().get(page), type);
            Object high = boundOf(index.getMaxValues().get(page), type);
            judgeBounds("page", type, mine, low, high);
            BoundaryOrder order = index.getBoundaryOrder();
            if (lastLow != null && order != BoundaryOrder.UNORDERED) {
                int sign = order == BoundaryOrder.ASCENDING ? 1 : -1;
                check(sign * compare(type, lastLow, low) <= 0 && sign * compare(type, lastHigh, high) <= 0,
                        "boundary order %s", order);
            }
            lastLow = low;
            lastHigh = high;
        }
    }

    private static FilterPredicate equalTo(String name, Object value) {
        if (value instanceof Integer) {
            return FilterApi.eq(FilterApi.intColumn(name), (Integer) value);
        }
        if (value instanceof Long) {
            return FilterApi.eq(FilterApi.longColumn(name), (Long) value);
        }
        if (value instanceof Double) {
            return FilterApi.eq(FilterApi.doubleColumn(name), (Double) value);
        }
        if (value instanceof Float) {
            return FilterApi.eq(FilterApi.floatColumn(name), (Float) value);
        }
        if (value instanceof Boolean) {
            return FilterApi.eq(FilterApi.booleanColumn(name), (Boolean) value);
        }
        return FilterApi.eq(FilterApi.binaryColumn(name), (Binary) value);
    }

    private static long count(Path path, FilterPredicate filter) throws IOException {
        long found = 0;
        try (ParquetReader<Group> reader = ParquetReader
                .builder(new GroupReadSupport(), new org.apache.hadoop.fs.Path(path.toUri()))
                .withFilter(FilterCompat.get(filter)).build()) {
            while (reader.read() != null) {
                found++;
            }
        }
        return found;
    }

    /** A value from the middle is found as often as it is there. */
    private static void judgeFilters(Path path, MessageType schema, List<Expected> columns) throws IOException {
        for (Expected column : columns) {
            PrimitiveType type = schema.getType(column.name).asPrimitiveType();
            List<byte[]> some = column.values.stream().filter(v -> v != null).collect(Collectors.toList());
            if (some.isEmpty()) {
                continue;
            }
            Object value = boxed(some.get(some.size() / 2), type);
            if (isNan(value)) {
                continue;
            }
            long want = some.stream().filter(v -> {
                Object other = boxed(v, type);
                return !isNan(other) && (value instanceof Double || value instanceof Float
                        ? ((Number) value).doubleValue() == ((Number) other).doubleValue()
                        : value.equals(other));
            }).count();
            boolean zero = value instanceof Number && ((Number) value).doubleValue() == 0
                    && !(value instanceof Integer || value instanceof Long);
            long got = count(path, equalTo(column.name, value));
            // -0.0 and 0.0: parquet-java's eq may tell them apart
            check(got == want || zero && got <= want, "%s: a filter finds %d, not %d", column.type, got, want);
        }
    }

    private static void judge(Path expectation) throws IOException {
        List<Integer> groups = new ArrayList<>();
        List<Expected> columns = readExpectation(expectation, groups);
        Path path = Paths.get(expectation.toString().replaceAll("expect$", "parquet"));
        Configuration configuration = new Configuration(false);
        MessageType schema;
        try (ParquetFileReader reader = ParquetFileReader.open(
                HadoopInputFile.fromPath(new org.apache.hadoop.fs.Path(path.toUri()), configuration))) {
            schema = reader.getFileMetaData().getSchema();
            judgeSchema(schema, columns);
            check(reader.getRowGroups().size() == groups.size(), "%d row groups", reader.getRowGroups().size());
            int first = 0;
            for (int g = 0; g < groups.size(); g++) {
                BlockMetaData block = reader.getRowGroups().get(g);
                int rows = groups.get(g);
                check(block.getRowCount() == rows, "%d rows", block.getRowCount());
                judgeValues(reader.readNextRowGroup(), schema, reader.getFileMetaData().getCreatedBy(), columns,
                        first, rows);
                for (int c = 0; c < columns.size(); c++) {
                    List<byte[]> values = columns.get(c).values.subList(first, first + rows);
                    judgeStatistics(block.getColumns().get(c), values);
                    judgeIndexes(reader, block.getColumns().get(c), values);
                }
                first += rows;
            }
        }
        judgeFilters(path, schema, columns);
    }

    public static void main(String[] args) throws IOException {
        int passed = 0;
        int failed = 0;
        List<Path> expectations;
        if (args.length != 1) {
            System.err.println("usage: ParquetJudge DIRECTORY");
            System.exit(2);
        }
        try (Stream<Path> files = Files.list(Paths.get(args[0]))) {
            expectations = files.filter(f -> f.toString().endsWith(".expect")).sorted().collect(Collectors.toList());
        }
        for (Path expectation : expectations) {
            try {
                judge(expectation);
                passed++;
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("FAILED " + expectation.getFileName() + ": " + error);
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed > 0 || passed == 0 ? 1 : 0);
    }
}
