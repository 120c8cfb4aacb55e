import test from 'ava';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { readEnvironment } from '../../../../shared/platform/config/config.ts';

/** The message for each invalid variable, one per line. */
function findWrongAddresses(env: Readonly<Record<string, string>>): string[] {
  try {
    readEnvironment(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
}

const isWrong = (name: string, value: string): boolean => findWrongAddresses({ [name]: value }).length > 0;

test('addresses that clients accept are valid', (t) => {
  for (const [name, value] of [
    ['REDIS_URL', 'redis://127.0.0.1'],
    ['REDIS_URL', 'rediss://:secret@10.0.0.1:6379/2'],
    ['REDIS_URL', 'redis://a:6379, redis://b:6379'],
    ['MONGODB_URL', 'mongodb://a,b:27018/gateway?replicaSet=rs0'],
    ['MONGODB_URL', 'mongodb://user:p%40ss@a'],
    ['MONGODB_URL', 'mongodb+srv://cluster.example/gateway'],
    ['MONGODB_URL', 'mongodb://%2Ftmp%2Fmongodb-27017.sock/gateway'],
    ['MONGODB_URL', 'mongodb://[::1]:27017'],
    ['S3_ENDPOINT', 'http://[::1]:9000'],
    ['PUBLIC_URL', 'https://gateway.example/v1/'],
    ['SMTP_URL', 'smtp://127.0.0.1:25'],
    ['SMTP_URL', 'smtps://user%40mail.example:p%2Fss@mail.example/'],
    ['SMTP_URL', 'smtp://[::1]:587'],
    ['SUPPORT_EMAIL', 'support@почта.example'],
    ['ALERT_EMAIL', 'ops@gateway.example'],
    ['ALERT_WEBHOOK_URL', 'http://ann:p%40ss@10.0.0.1:9093/alerts?token=1'],
    ['MAIL_FROM', 'no-reply@gateway.example'],
    ['MAIL_FROM', '"Gateway, Inc." <no-reply@gateway.example>'],
  ] as const)
    t.false(isWrong(name, value), value);
});

test('an invalid address is reported with the name of its variable, but without its value', (t) => {
  for (const [name, value] of [
    ['REDIS_URL', 'localhost:6379'],
    ['SMTP_URL', 'mail.example:587'],
    ['ALERT_WEBHOOK_URL', 'hooks.example.com'],
    ['ALERT_WEBHOOK_URL', 'https://user:hush%zz@hooks.example.com'],
    ['SMTP_URL', 'http://mail.example'],
    ['SMTP_URL', 'smtp://user:hush%zz@mail.example'],
    ['SMTP_URL', 'smtp://user:hush@mail.example/?pool=true'],
    ['REDIS_URL', 'redis://'],
    ['REDIS_URL', 'redis://a:99999'],
    ['REDIS_URL', 'redis://a,b'],
    ['REDIS_URL', 'redis://:hush#hush@a'],
    ['MONGODB_URL', 'mongodb://'],
    ['MONGODB_URL', 'mongodb://a:port'],
    ['MONGODB_URL', 'mongodb://user:hush@hush@a'],
    ['S3_ENDPOINT', 'minio:9000'],
    ['S3_ENDPOINT', 'http://'],
    ['PUBLIC_URL', 'gateway.example'],
    ['PUBLIC_URL', 'https://ann:hush@gateway.example'],
    ['BACKUP_URL', 'https://gateway.example/v1?key=hush'],
    ['DIRECT_URL', 'https://gateway.example/#hush'],
  ] as const) {
    const [fault = '', ...more] = findWrongAddresses({ [name]: value });
    t.deepEqual(more, []);
    t.true(fault.startsWith(`${name} must be an address such as `), value);
    t.false(fault.includes('hush'));
  }
});
