static int mp_pipeline_placeholder; int mp_pipeline_unused(void); int mp_pipeline_unused(void){return mp_pipeline_placeholder;}
