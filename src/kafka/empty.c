static int mp_kafka_placeholder; int mp_kafka_unused(void); int mp_kafka_unused(void){return mp_kafka_placeholder;}
