static int mp_column_placeholder; int mp_column_unused(void); int mp_column_unused(void){return mp_column_placeholder;}
