import test from 'ava';
import { loadConfig } from '../../../../shared/platform/config/config.ts';
import { readPairs } from '../../../../shared/platform/config/tracing-config.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';

const complete = {
  REDIS_URL: 'redis://127.0.0.1:1',
  MONGODB_URL: 'mongodb://127.0.0.1:2',
  S3_ENDPOINT: 'http://127.0.0.1:3',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
  MASTER_KEY: '0123456789abcdef0123456789abcdef',
};

test('without an endpoint, nothing is traced', (t) => {
  t.is(loadConfig(complete).tracing, null);
  t.is(loadConfig({ ...complete, OTEL_SERVICE_NAME: 'x', OTEL_TRUST_TRACEPARENT: 'on' }).tracing, null);
});

test('the variables have the defaults of OpenTelemetry, and callers are not trusted', (t) => {
  const { tracing } = loadConfig({ ...complete, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/' });
  t.deepEqual(tracing, {
    endpoint: 'http://127.0.0.1:4318',
    headers: {},
    timeoutMs: 10_000,
    delayMs: 5_000,
    serviceName: null,
    resource: {},
    sampler: 'parentbased_always_on',
    samplerRatio: 1,
    trustsTraceparent: false,
  });
});

test('lists are read as OpenTelemetry writes them', (t) => {
  t.deepEqual(readPairs('api-key=a%20b, tenant = x=y,,').pairs, { 'api-key': 'a b', tenant: 'x=y' });
  t.deepEqual(readPairs('good=1,bad,%=2,=3,worse=%zz,line=%0A').wrong, [2, 4, 5, 6]);
});

test('a list that is not valid is reported without its text, which may be a secret', (t) => {
  const error = t.throws(() => loadConfig({ ...complete, OTEL_EXPORTER_OTLP_HEADERS: 'a=1,secret' }), {
    instanceOf: ConfigError,
  });
  t.regex(error.message, /OTEL_EXPORTER_OTLP_HEADERS has an entry \(number 2\) that is not name=value/);
  t.notRegex(error.message, /secret/);
});
