import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import type { TSchema } from 'typebox';
import { Secrets } from '../../../scripts/start/secrets-file.ts';
import { CatalogOutline, ModelEntry, UpstreamEntry } from '../../../shared/catalog/catalog-schema.ts';
import {
  ErrorBody,
  TranslatedValidationErrorBody,
  ValidationErrorBody,
} from '../../../api/contract/error-bodies.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../../api/contract/operations.ts';
import { Environment } from '../../../shared/platform/config/config.ts';

/** The product compiles validators without this check, because it takes longer than compiling. */
const metaSchemas = new Ajv2020({ allErrors: true });

function findFaults(schema: TSchema): unknown[] {
  return metaSchemas.validateSchema(schema) === true ? [] : (metaSchemas.errors ?? []);
}

test('the check itself detects a keyword whose value JSON Schema does not allow', (t) => {
  const wrong = { type: 'object', properties: { name: { type: 'string', minLength: '1' } } };
  t.like(findFaults(wrong), [{ instancePath: '/properties/name/minLength' }] as never);
});

for (const operation of Object.values(operations) as Operation[]) {
  const { operationId, query, body, response, additionalResponses = [] } = operation;
  test(`the schemas of ${operationId} are JSON Schema`, (t) => {
    for (const schema of [query, body, response, ...additionalResponses.map((answer) => answer.response)])
      if (schema !== undefined) t.deepEqual(findFaults(schema), []);
    t.pass();
  });
}

const others = {
  CatalogOutline,
  ModelEntry,
  UpstreamEntry,
  Environment,
  Secrets,
  ErrorBody,
  ValidationErrorBody,
  TranslatedValidationErrorBody,
};

for (const [name, schema] of Object.entries(others)) {
  test(`the schema ${name} is JSON Schema`, (t) => {
    t.deepEqual(findFaults(schema), []);
  });
}
