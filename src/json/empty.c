static int mp_json_placeholder; int mp_json_unused(void); int mp_json_unused(void){return mp_json_placeholder;}
