static int mp_obs_placeholder; int mp_obs_unused(void); int mp_obs_unused(void){return mp_obs_placeholder;}
