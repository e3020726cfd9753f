static int mp_parquet_placeholder; int mp_parquet_unused(void); int mp_parquet_unused(void){return mp_parquet_placeholder;}
