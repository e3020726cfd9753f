static int mp_store_placeholder; int mp_store_unused(void); int mp_store_unused(void){return mp_store_placeholder;}
