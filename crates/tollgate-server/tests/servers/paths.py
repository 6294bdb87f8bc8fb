"""Serves the resources named on the command line by Flask, one route each."""

import sys

from flask import Flask
from werkzeug.serving import make_server

app = Flask(__name__)
port, *resources = sys.argv[1:]
for resource in resources:
    app.add_url_rule(resource, resource, lambda resource=resource: f"resource {resource}")
make_server("127.0.0.1", int(port), app, threaded=True).serve_forever()
