"""validate.py SCHEMA DOCUMENT: says where a JSON document does not fit a JSON Schema."""

import json
import pathlib
import sys

import jsonschema

schema, document = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
validator = jsonschema.validators.validator_for(schema)(schema)
errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
sys.exit("\n".join(errors[:20]) or 0)
