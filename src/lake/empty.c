static int mp_lake_placeholder; int mp_lake_unused(void); int mp_lake_unused(void){return mp_lake_placeholder;}
