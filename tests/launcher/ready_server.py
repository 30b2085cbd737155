"""A process that is ready as soon as it listens: `ready_server.py PORT`."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Ready(BaseHTTPRequestHandler):
    """Answers everything with an empty 200."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
