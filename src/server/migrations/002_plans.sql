-- Plans that do not depend on what ANALYZE happened to see.
--
-- Statements are planned once and kept. Statistics of a table that is nearly empty make every index look
-- alike, since they all begin with catalog_id; a plan made then reads the whole history later. Without
-- statistics of columns the planner counts on each condition to leave one row in 200, which picks the
-- index with the most conditions, at any size. (tests/server/judge_growth.py)
DO '
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = ''r''
            AND left(c.relname, 4) = ''hog_'' AND a.attnum > 0 AND NOT a.attisdropped
    LOOP
        EXECUTE format(''ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0'', place.relname, place.attname);
    END LOOP;
END';

-- Asked for by path alone ("catalog_id + 0"), so that no other index can look as good; and not partial: a
-- partial index counts as nearly empty.
DROP INDEX hog_file_removal_path;
CREATE INDEX hog_file_removal_path ON hog_file_removal (path);
