"""The native API's routes: parse, call one service, shape the answer."""
