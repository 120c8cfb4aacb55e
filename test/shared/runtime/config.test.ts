import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { ConfigError } from '../../../shared/runtime/config-error.ts';
import { loadConfig, pickEndpoints } from '../../../shared/runtime/config.ts';

const complete = {
  REDIS_URL: 'redis://127.0.0.1:1',
  MONGODB_URL: 'mongodb://127.0.0.1:2',
  S3_ENDPOINT: 'http://127.0.0.1:3',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
  MASTER_KEY: '0123456789abcdef0123456789abcdef',
};

test('every wrong variable is named in one message', (t) => {
  const error = t.throws(
    () => loadConfig({ ...complete, PORT: 'x', LOG_LEVEL: 'loud', REDIS_URL: 'http://x' }),
    { instanceOf: ConfigError },
  );
  for (const name of ['PORT', 'LOG_LEVEL', 'REDIS_URL']) t.true(error.message.includes(name), name);
});

test('an origin that is none is named beside all else that is wrong', (t) => {
  const error = t.throws(
    () => loadConfig({ ...complete, PORT: 'x', CORS_ORIGINS: 'https://app.example,app.example/page' }),
    { instanceOf: ConfigError },
  );
  t.regex(error.message, /^ {2}PORT /m);
  t.regex(error.message, /^ {2}CORS_ORIGINS "app\.example\/page" is no origin: /m);
});

test('in production every missing service is named at once, and no running stack stands in for it', (t) => {
  const error = t.throws(() => loadConfig({ NODE_ENV: 'production' }), { instanceOf: ConfigError });
  for (const name of Object.keys(complete)) t.true(error.message.includes(name), name);
});

test('where nothing runs the message says what to do', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'config-'));
  t.teardown(() => rm(dir, { recursive: true }));
  t.throws(() => loadConfig({ DATA_DIR: dir }), { instanceOf: ConfigError, message: /npm start/ });
});

test('what is not set comes from the stack that runs, unless its process is gone', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'config-'));
  t.teardown(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, 'endpoints.json'), JSON.stringify({ ...complete, pid: process.pid }));
  const config = loadConfig({ DATA_DIR: dir, REDIS_URL: 'redis://127.0.0.1:9' });
  t.is(config.redisUrl, 'redis://127.0.0.1:9');
  t.is(config.mongodbUrl, complete.MONGODB_URL);
  await writeFile(join(dir, 'endpoints.json'), JSON.stringify({ ...complete, pid: 2 ** 30 }));
  t.throws(() => loadConfig({ DATA_DIR: dir }), { instanceOf: ConfigError });
});

test('credentials for another bucket do not replace the embedded one’s', (t) => {
  t.like(pickEndpoints(complete, { AWS_ACCESS_KEY_ID: 'mine' }), {
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
  });
  t.is(pickEndpoints(complete, { S3_ENDPOINT: 'http://s3' })['AWS_ACCESS_KEY_ID'], undefined);
});

test('the addresses for callers lose their last slash and their version', (t) => {
  const config = loadConfig({
    ...complete,
    PUBLIC_URL: 'https://api.example.com/v1/',
    BACKUP_URL: 'https://backup.example.com//v1',
  });
  t.is(config.publicUrl, 'https://api.example.com');
  t.is(config.backupUrl, 'https://backup.example.com');
  t.is(config.directUrl, null);
});
