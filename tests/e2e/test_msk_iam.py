"""Sign-in to Amazon MSK: what millpond sends to a broker that asks for SASL/OAUTHBEARER."""
import base64
import datetime
import hashlib
import hmac
import socket
import struct
import threading
import types
import urllib.parse

import services

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 17, 18, 36


class Broker:
    """As much of a broker as a client needs until it has signed in; then it hangs up.
    (Kafka protocol guide: ApiVersions, SaslHandshake, SaslAuthenticate)"""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.signed_in = []  # first client messages of the mechanism (RFC 7628)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while self.answer(connection):
                    pass
            except (OSError, EOFError):
                pass

    @staticmethod
    def read(connection, size):
        data = b""
        while len(data) < size:
            more = connection.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def answer(self, connection):
        request = self.read(connection, struct.unpack(">i", self.read(connection, 4))[0])
        key, version, number, client = struct.unpack_from(">hhih", request)
        body = request[10 + max(client, 0):]
        if key == API_VERSIONS:
            apis = [(METADATA, 0, 4), (SASL_HANDSHAKE, 0, 1), (API_VERSIONS, 0, 3),
                    (SASL_AUTHENTICATE, 0, 0)]
            if version >= 3:
                answer = struct.pack(">hB", 0, len(apis) + 1) + b"".join(
                    struct.pack(">hhhB", *api, 0) for api in apis) + struct.pack(">iB", 0, 0)
            else:
                answer = struct.pack(">hi", 0, len(apis)) + b"".join(
                    struct.pack(">hhh", *api) for api in apis)
                answer += struct.pack(">i", 0) if version else b""
        elif key == SASL_HANDSHAKE:
            answer = struct.pack(">hih", 0, 1, len("OAUTHBEARER")) + b"OAUTHBEARER"
        else:
            assert key == SASL_AUTHENTICATE, key
            size = struct.unpack_from(">i", body)[0]
            self.signed_in.append(body[4:4 + size])
            return False
        connection.sendall(struct.pack(">ii", 4 + len(answer), number) + answer)
        return True


def signature(url, secret):
    """The signature that belongs to the URL's parameters, worked out from the specification."""
    parts = urllib.parse.urlsplit(url)
    pairs = [pair.split("=", 1) for pair in parts.query.split("&")]
    signed = sorted(pair for pair in pairs if pair[0] not in ("X-Amz-Signature", "User-Agent"))
    values = {name: urllib.parse.unquote(value) for name, value in signed}
    day, region, service, end = scope = values["X-Amz-Credential"].split("/")[1:]
    canonical = "\n".join(["GET", "/", "&".join("=".join(pair) for pair in signed),
                           "host:" + parts.netloc, "", "host", hashlib.sha256(b"").hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", values["X-Amz-Date"], "/".join(scope),
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + secret.encode()
    for part in (day, region, service, end, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def settings(broker, lake, **more):
    return services.environment(
        broker, "events", **lake.env(), KAFKA_CONSUMER_SECURITY_PROTOCOL="SASL_PLAINTEXT",
        KAFKA_CONSUMER_SASL_MECHANISMS="OAUTHBEARER", AWS_ACCESS_KEY_ID="AKIDEXAMPLE",
        AWS_SECRET_ACCESS_KEY=SECRET, AWS_SESSION_TOKEN="ses/sion+token==", **more)


def test_the_broker_gets_a_signed_token(local_lake, tmp_path):
    broker = Broker()
    env = settings(broker, local_lake, AWS_DEFAULT_REGION="eu-central-1")
    millpond = services.start_millpond(env, str(tmp_path))
    try:
        services.wait_until(lambda: broker.signed_in, 120, "a sign-in")
    finally:
        millpond.kill()
        broker.listener.close()
    message = broker.signed_in[0].decode()
    assert message.startswith("n,,\x01auth=Bearer ") and message.endswith("\x01\x01")
    token = message[len("n,,\x01auth=Bearer "):-2]
    assert "=" not in token
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    parts = urllib.parse.urlsplit(url)
    values = dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True))
    assert (parts.scheme, parts.netloc, parts.path) == (
        "https", "kafka.eu-central-1.amazonaws.com", "/")
    assert values["Action"] == "kafka-cluster:Connect"
    assert values["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    assert values["X-Amz-Expires"] == "900"
    assert values["X-Amz-SignedHeaders"] == "host"
    assert values["X-Amz-Security-Token"] == "ses/sion+token=="
    assert values["User-Agent"].startswith("millpond/")
    made = datetime.datetime.strptime(values["X-Amz-Date"] + "+0000", "%Y%m%dT%H%M%SZ%z")
    age = datetime.datetime.now(datetime.timezone.utc) - made
    assert abs(age.total_seconds()) < 120
    assert values["X-Amz-Credential"] == \
        "AKIDEXAMPLE/%s/eu-central-1/kafka-cluster/aws4_request" % made.strftime("%Y%m%d")
    assert values["X-Amz-Signature"] == signature(url, SECRET)
    for secret in (SECRET, "ses/sion", token):
        assert secret not in millpond.log()


def test_no_region_is_a_fault_of_the_settings(local_lake, tmp_path):
    broker = types.SimpleNamespace(bootstrap="127.0.0.1:1")
    millpond = services.start_millpond(settings(broker, local_lake), str(tmp_path))
    assert millpond.wait_exit(120) == 2
    assert "neither AWS_REGION nor AWS_DEFAULT_REGION is set" in millpond.log()


def test_no_keys_are_told(local_lake, tmp_path):
    broker = Broker()
    env = settings(broker, local_lake, AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true",
                   MILLPOND_OUTAGE_MS_MAX="3000")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        del env[name]
    millpond = services.start_millpond(env, str(tmp_path))
    try:
        assert millpond.wait_exit(60) == 5
        assert "keys for Amazon MSK" in millpond.log()
        assert not broker.signed_in
    finally:
        millpond.kill()
        broker.listener.close()
