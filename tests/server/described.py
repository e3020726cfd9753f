"""What the service says of itself (openapi.yaml), held against what it takes and answers.

Each request of a judge goes through check(): an answer must be what its operation's schema says, and so
must a body that was accepted; a refusal must be an ApiError. No object may hold a member that its schema
does not name.
"""
import collections
import os
import re
import urllib.parse

import jsonschema
import referencing
import services
import yaml

URN, JSON = "urn:hoglake", "application/json"
CHECKS_MAX = 150  # of one operation and status: many writers repeat the same thing


class Document:
    def __init__(self):
        with open(os.path.join(services.TOP, "src/server/openapi.yaml")) as file:
            self.tree = yaml.safe_load(file)
        resource = referencing.Resource(self.tree, referencing.jsonschema.DRAFT202012)
        self.registry = referencing.Registry().with_resource(URN, resource)
        self.operations, self.seen = [], collections.Counter()
        for path, item in self.tree["paths"].items():
            pattern = re.compile(re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(path)))
            for method, operation in item.items():
                if method != "parameters":
                    operation["at"] = "/paths/%s/%s" % (path.replace("/", "~1"), method)
                    self.operations.append((path.count("{"), method.upper(), pattern, operation))
        self.operations.sort(key=lambda o: o[0])  # "resolve" before "{snapshot}"

    def find(self, method, path):
        for _, known, pattern, operation in self.operations:
            if known == method and pattern.fullmatch(path):
                return operation
        return None

    def validate(self, pointer, value, what):
        """pointer: to the schema in the document."""
        schema = {"$ref": "%s#%s" % (URN, urllib.parse.quote(pointer))}
        validator = jsonschema.Draft202012Validator(schema, registry=self.registry)
        for error in validator.iter_errors(value):
            raise AssertionError("%s is not as described: %s at %s" % (
                what, error.message[:500], "/".join(map(str, error.absolute_path))))

    def check(self, method, path, body, status, answer):
        """path: below the root, without its query."""
        operation = self.find(method, path)
        if not operation:
            assert status in (404, 405, 400, 401), (method, path, status)
            return
        name = operation["operationId"]
        self.seen[name, status] += 1
        if self.seen[name, status] > CHECKS_MAX:
            return
        if status >= 400:
            self.validate("/components/schemas/ApiError", answer, name + "'s refusal")
            return
        response = operation["responses"].get(str(status))
        assert response, "%s answers %d, which is not described" % (name, status)
        if JSON in response["content"]:
            self.validate("%s/responses/%d/content/application~1json/schema" % (operation["at"], status), answer,
                          name + "'s answer")
        if body is not None and "requestBody" in operation:
            self.validate(operation["at"] + "/requestBody/content/application~1json/schema", body, name + "'s body")

    def unseen(self):
        """Operations that have never been seen to succeed, but for those that never do."""
        return sorted(o["operationId"] for _, _, _, o in self.operations if "501" not in o["responses"]
                      and not any(self.seen[o["operationId"], status] for status in (200, 201)))
