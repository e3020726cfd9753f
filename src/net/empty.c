static int mp_net_placeholder; int mp_net_unused(void); int mp_net_unused(void){return mp_net_placeholder;}
