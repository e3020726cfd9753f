/* cli/msk_iam.h - tokens for Amazon MSK's IAM sign-in over SASL/OAUTHBEARER.
 *
 * A token is a URL that AWS could be asked with for the action kafka-cluster:Connect, signed with
 * Signature Version 4 in its query and good for 15 minutes, as base64url without padding. The
 * broker hands it to IAM. The client asks for the next one at four fifths of a token's life.
 *
 * Keys come from the usual chain (store/credentials.h).
 *
 * Threads  tokens are made in one of the Kafka client's; the key chain may be shared.
 * After    "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)" in the
 * Amazon S3 API reference; "IAM access control" in the Amazon MSK developer guide; RFC 4648,
 *          section 5 (base64url).
 */
#ifndef MP_CLI_MSK_IAM_H
#define MP_CLI_MSK_IAM_H

#include "config/config.h"
#include "kafka/source_rdkafka.h"
#include "store/credentials.h"

/* Whether the settings ask for it: sasl.mechanisms is OAUTHBEARER, and the client was not told to
 * make tokens by itself (sasl.oauthbearer.method, enable.sasl.oauthbearer.unsecure.jwt). */
bool mp_msk_iam_wanted(const struct mp_config_kafka *kafka);
/* Gives a maker of tokens, to be handed to the source. Borrows env and the configuration.
 * MP_BAD_CONFIG: there is no region, or one that cannot be. */
enum mp_code mp_msk_iam_open(const struct mp_config_kafka *kafka, const struct mp_env *env,
                             struct mp_err *err, struct mp_source_token *ret);

/* Pure: adds the token of these keys at this time. */
void mp_msk_iam_token(const struct mp_aws_keys *keys, struct mp_str region, int64_t wall_us,
                      struct mp_buf *ret, int64_t *ret_end_ms);

#endif
