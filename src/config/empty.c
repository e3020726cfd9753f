static int mp_config_placeholder; int mp_config_unused(void); int mp_config_unused(void){return mp_config_placeholder;}
