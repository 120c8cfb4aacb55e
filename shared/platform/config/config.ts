import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import { compileChecker } from '../../contract/validation.ts';
import { StringEnum } from '../../contract/fields.ts';
import { parseRub } from '../../encoding/money.ts';
import { readCorsOrigins, type CorsOrigins } from './cors-origins.ts';
import { addressFormats } from './check-addresses.ts';
import { isAlive } from '../runtime/is-alive.ts';
import { ConfigError } from '../runtime/config-error.ts';
import { explainFileError } from '../runtime/explain-file-error.ts';
import type { LogFormat } from '../runtime/logger.ts';
import { defaultServiceName, readMailSender, type MailSender } from './mail-sender.ts';
import { readNoGrantDomains } from './no-grant-domains.ts';
import { findLogoProblem, readPageConfig, type PageConfig } from './page-config.ts';
import { toServerUrl } from './server-url.ts';
import { readPairs, readTracingConfig, samplerNames, type TracingConfig } from './tracing-config.ts';
import { stripTrailing } from '../runtime/strip-trailing.ts';

const OnOff = (byDefault: 'on' | 'off') => StringEnum(['on', 'off'], { default: byDefault });

const Address = (format: keyof typeof addressFormats) => Type.Optional(Type.String({ format }));

/** Every environment variable the product reads. */
export const Environment = Type.Object({
  NODE_ENV: Type.Optional(Type.String()),
  DATA_DIR: Type.String({ default: '.data', minLength: 1 }),
  PORT: Type.Integer({ default: 8080, minimum: 0, maximum: 65_535 }),
  HOST: Type.String({ default: '127.0.0.1', minLength: 1 }),
  CATALOG: Type.String({ default: 'catalog.yaml', minLength: 1 }),
  REDIS_URL: Address('redis-urls'),
  MONGODB_URL: Address('mongodb-url'),
  MONGOD_BIN: Type.Optional(Type.String()),
  S3_ENDPOINT: Address('http-url'),
  S3_BUCKET: Type.String({ default: 'model-gateway', minLength: 3, maxLength: 63 }),
  S3_PUBLIC_URL: Address('http-url'),
  S3_MANAGE_BUCKET: StringEnum(['auto', 'on', 'off'], { default: 'auto' }),
  AWS_ACCESS_KEY_ID: Type.Optional(Type.String()),
  AWS_SECRET_ACCESS_KEY: Type.Optional(Type.String()),
  AWS_REGION: Type.String({ default: 'us-east-1' }),
  MASTER_KEY: Type.Optional(Type.String({ minLength: 32 })),
  REVEAL: OnOff('on'),
  PUBLIC_URL: Address('server-url'),
  BACKUP_URL: Address('server-url'),
  DIRECT_URL: Address('server-url'),
  TRUST_PROXY: OnOff('off'),
  KEEPALIVE_TIMEOUT_MS: Type.Integer({ default: 75_000, minimum: 1_000, maximum: 3_600_000 }),
  MAX_CONNECTIONS: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  MAX_CONNECTIONS_PER_ADDRESS: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  CORS_ORIGINS: Type.Optional(Type.String()),
  LOG_LEVEL: StringEnum(['trace', 'debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
  LOG_FORMAT: Type.Optional(StringEnum(['json', 'pretty'])),
  METRICS_TOKEN: Type.Optional(Type.String()),
  ADMIN_TOKEN: Type.Optional(Type.String()),
  METRICS_PORT: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
  ALERT_WEBHOOK_URL: Address('webhook-url'),
  ALERT_EMAIL: Address('mail-address'),
  MIN_WORKERS: Type.Integer({ default: 1, minimum: 0, maximum: 10_000 }),
  SUPPORT_EMAIL: Address('mail-address'),
  SMTP_URL: Address('smtp-url'),
  MAIL_FROM: Type.String({ default: `${defaultServiceName} <no-reply@localhost>`, format: 'mail-sender' }),
  SIGNUP: OnOff('on'),
  SIGNUP_BALANCE: Type.String({ default: '0', format: 'roubles' }),
  SIGNUP_FREE_REQUESTS: Type.Integer({ default: 10, minimum: 0, maximum: 1_000_000 }),
  SIGNUP_GRANTS_PER_NETWORK: Type.Integer({ default: 5, minimum: 0, maximum: 1_000_000 }),
  SIGNUP_NO_GRANT_DOMAINS: Type.Optional(Type.String()),
  WEB_CAPTCHA: StringEnum(['on', 'off', 'optional'], { default: 'on' }),
  PAGES: OnOff('on'),
  BRAND_NAME: Type.Optional(Type.String({ format: 'visible-text', maxLength: 60 })),
  BRAND_LOGO: Type.Optional(Type.String()),
  BRAND_COLOR: Type.Optional(Type.String({ format: 'color' })),
  TERMS_URL: Address('http-url'),
  PRIVACY_URL: Address('http-url'),
  FOOTER_TEXT: Type.Optional(Type.String({ format: 'visible-text', maxLength: 300 })),
  MAX_UNFINISHED_BATCHES: Type.Integer({ default: 100, minimum: 1, maximum: 10_000 }),
  MAX_FILE_BYTES: Type.Integer({ default: 200_000_000, minimum: 1_000, maximum: 5_000_000_000 }),
  MAX_FILES_PER_ACCOUNT: Type.Integer({ default: 1_000, minimum: 1, maximum: 100_000 }),
  MAX_FILE_BYTES_PER_ACCOUNT: Type.Integer({
    default: 10_000_000_000,
    minimum: 1_000,
    maximum: 10_000_000_000_000,
  }),
  MAX_BATCH_LINES: Type.Integer({ default: 50_000, minimum: 1, maximum: 1_000_000 }),
  LOG_RETENTION_DAYS: Type.Integer({ default: 30, minimum: 3, maximum: 3_650 }),
  DEFAULT_RPM: Type.Integer({ default: 60, minimum: 1, maximum: 1_000_000 }),
  DEMO_ACCOUNT: Type.Optional(StringEnum(['on', 'off'])),
  OTEL_EXPORTER_OTLP_ENDPOINT: Address('http-url'),
  OTEL_EXPORTER_OTLP_HEADERS: Type.Optional(Type.String()),
  OTEL_EXPORTER_OTLP_TIMEOUT: Type.Integer({ default: 10_000, minimum: 1, maximum: 600_000 }),
  OTEL_BSP_SCHEDULE_DELAY: Type.Integer({ default: 5_000, minimum: 1, maximum: 600_000 }),
  OTEL_SERVICE_NAME: Type.Optional(Type.String()),
  OTEL_RESOURCE_ATTRIBUTES: Type.Optional(Type.String()),
  OTEL_TRACES_SAMPLER: StringEnum([...samplerNames], { default: 'parentbased_always_on' }),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({ default: 1, minimum: 0, maximum: 1 }),
  OTEL_TRUST_TRACEPARENT: OnOff('off'),
});
export type Environment = Static<typeof Environment>;

export interface Config {
  readonly production: boolean;
  readonly dataDir: string;
  readonly port: number;
  readonly host: string;
  readonly catalogPath: string;
  /** Several nodes, separated by commas, form a Cluster. */
  readonly redisUrl: string;
  readonly mongodbUrl: string;
  readonly s3: {
    readonly endpoint: string;
    readonly bucket: string;
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly region: string;
    readonly publicUrl: string | null;
    /** Whether to set our lifecycle rules on the bucket. `auto` sets them only if we created the bucket. */
    readonly manageBucket: 'auto' | 'on' | 'off';
  };
  /** 32 bytes. Encrypts secrets that users can view again. */
  readonly masterKey: string;
  /** Whether API keys are stored in a form that can be shown again, or only as hashes. */
  readonly revealsKeys: boolean;
  /** Without a trailing slash or version. Null means the listening address. */
  readonly publicUrl: string | null;
  /** Other addresses of the same service, in the same form. Null if there is none. */
  readonly backupUrl: string | null;
  readonly directUrl: string | null;
  readonly trustProxy: boolean;
  /** How long an idle caller connection is kept open. */
  readonly keepAliveTimeoutMs: number;
  /** Concurrent caller connections. Null means as many as the process has file descriptors for. */
  readonly maxConnections: number | null;
  /** Null means that one address may use at most half of the connections that are not used by other addresses. */
  readonly maxConnectionsPerAddress: number | null;
  /** Null means that no page of another origin may call the API. */
  readonly corsOrigins: CorsOrigins | null;
  /** Limits of the files that callers upload. */
  readonly files: {
    readonly maxFileBytes: number;
    /** Of an account's files together. */
    readonly maxFiles: number;
    readonly maxBytes: number;
    /** Of a batch's input. */
    readonly maxLines: number;
  };
  readonly logLevel: string;
  /** Null means `pretty` at a terminal, and `json` otherwise. */
  readonly logFormat: LogFormat | null;
  /** Null if only this machine may read the metrics. */
  readonly metricsToken: string | null;
  /** What operators show to see the queues. Null if nobody may. */
  readonly adminToken: string | null;
  /** Where a worker listens for probes and scrapes. Null if it does not listen. */
  readonly metricsPort: number | null;
  /** Where operators are told what is wrong. Either may be null. */
  readonly alerts: {
    /** May contain a secret. */
    readonly webhookUrl: string | null;
    readonly email: string | null;
  };
  /** Whether a queue without a worker is a problem. If not, workers are started when there is work. */
  readonly expectsWorkers: boolean;
  /** Unfinished batches of an account. */
  readonly maxUnfinishedBatches: number;
  /** For how many days rows of the request log are kept. */
  readonly requestLogDays: number;
  readonly defaultRpm: number;
  /** Null if no mail server is set. Mails then stay queued. */
  readonly smtpUrl: string | null;
  readonly mailFrom: MailSender;
  /** Contact address for users' questions. Null if none is set. */
  readonly supportEmail: string | null;
  readonly signup: {
    readonly isOpen: boolean;
    /** Starting balance of a new user's first account. */
    readonly balanceNano: bigint;
    readonly freeRequests: number;
    /** Grants a day to new users of one address. Zero means that nobody gets a grant. */
    readonly grantsPerNetwork: number;
    /** Mail domains, in lower-case ASCII, whose users get no grant, nor do those of their subdomains. */
    readonly noGrantDomains: ReadonlySet<string>;
  };
  /** With `optional`, a code request may omit the captcha token but gets stricter limits. */
  readonly captchaMode: 'on' | 'off' | 'optional';
  readonly pages: PageConfig;
  /** Null if no traces are exported. */
  readonly tracing: TracingConfig | null;
}

/** The variables that `npm start` writes to `DATA_DIR/endpoints.json` for other processes on this machine. */
const endpointVariables = [
  'REDIS_URL',
  'MONGODB_URL',
  'S3_ENDPOINT',
  'S3_BUCKET',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
  'MASTER_KEY',
  'REVEAL',
  'CATALOG',
  'SMTP_URL',
  'MAIL_FROM',
  'SUPPORT_EMAIL',
  'SIGNUP',
  'LOG_RETENTION_DAYS',
] as const;
export type Endpoints = Partial<Record<(typeof endpointVariables)[number], string>> & { pid?: number };

const required = [
  'REDIS_URL',
  'MONGODB_URL',
  'S3_ENDPOINT',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'MASTER_KEY',
] as const;

const checkEnvironment = compileChecker(Environment, 'text', addressFormats);

/**
 * Checks the variables and fills in defaults. Variables of embedded services may still be missing.
 * @throws ConfigError
 */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const known = Object.keys(Environment.properties);
  // Treat an empty variable as unset: `REDIS_URL= npm start` means the default.
  const values = Object.fromEntries(known.filter((name) => env[name]).map((name) => [name, env[name]]));
  const problems = checkEnvironment(values).map((issue) => `${issue.loc.join('.')} ${issue.msg}`);
  for (const entry of readCorsOrigins(values['CORS_ORIGINS'] ?? '').wrong) {
    problems.push(
      `CORS_ORIGINS ${JSON.stringify(entry)} is not an origin: use https://app.example.com, or * alone`,
    );
  }
  for (const entry of readNoGrantDomains(values['SIGNUP_NO_GRANT_DOMAINS'] ?? '').wrong) {
    problems.push(
      `SIGNUP_NO_GRANT_DOMAINS ${JSON.stringify(entry)} is not a mail domain: use names such as example.com`,
    );
  }
  for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_RESOURCE_ATTRIBUTES']) {
    for (const position of readPairs(values[name] ?? '').wrong)
      problems.push(`${name} has an entry (number ${position}) that is not name=value, percent-encoded`);
  }
  const logoProblem = values['BRAND_LOGO'] === undefined ? null : findLogoProblem(values['BRAND_LOGO']);
  if (logoProblem !== null) problems.push(`BRAND_LOGO ${logoProblem}`);
  const weakness = findTokenWeakness(values['ADMIN_TOKEN'] ?? '');
  if (weakness !== null)
    problems.push(`ADMIN_TOKEN ${weakness}: set one that "openssl rand -hex 32" prints, or none`);
  if (problems.length > 0) {
    const lines = problems.map((problem) => `  ${problem}`);
    throw new ConfigError(`These environment variables are not valid:\n${lines.join('\n')}`);
  }
  return values as unknown as Environment;
}

const minTokenLength = 32;

/** Returns what is wrong with an operator's token, or null. An empty one is not set. */
function findTokenWeakness(token: string): string | null {
  if (token === '') return null;
  if (token.length < minTokenLength)
    return `has ${token.length} characters and needs at least ${minTokenLength}`;
  // A header may be unable to carry others.
  return /^[\x21-\x7e]+$/.test(token) ? null : 'may contain only ASCII characters, without spaces';
}

/**
 * Returns the format of log lines that the environment asks for, before the configuration is loaded. Null if none is
 * set, or one that `readEnvironment` rejects.
 */
export function readLogFormat({ LOG_FORMAT: format }: NodeJS.ProcessEnv): LogFormat | null {
  return format === 'json' || format === 'pretty' ? format : null;
}

/**
 * Loads the configuration of a process that uses the backing services.
 * @throws ConfigError that lists everything that is invalid or missing
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const production = env['NODE_ENV'] === 'production';
  const { DATA_DIR: dataDir } = readEnvironment(env);
  const values = readEnvironment(
    production ? env : { ...env, ...pickEndpoints(readEndpoints(dataDir), env) },
  );
  const missing = required.filter((name) => !values[name]);
  if (missing.length > 0) {
    throw new ConfigError(
      production
        ? `NODE_ENV=production requires these variables, which are not set: ${missing.join(', ')}`
        : `Nothing is running with DATA_DIR ${resolve(dataDir)}: run "npm start" first, or set ${missing.join(', ')}.`,
    );
  }
  return Object.freeze({
    production,
    dataDir: resolve(values.DATA_DIR),
    port: values.PORT,
    host: values.HOST,
    catalogPath: resolve(values.CATALOG),
    redisUrl: values.REDIS_URL!,
    mongodbUrl: values.MONGODB_URL!,
    s3: Object.freeze({
      endpoint: values.S3_ENDPOINT!,
      bucket: values.S3_BUCKET,
      accessKeyId: values.AWS_ACCESS_KEY_ID!,
      secretAccessKey: values.AWS_SECRET_ACCESS_KEY!,
      region: values.AWS_REGION,
      publicUrl: values.S3_PUBLIC_URL === undefined ? null : stripTrailing(values.S3_PUBLIC_URL, '/'),
      manageBucket: values.S3_MANAGE_BUCKET,
    }),
    masterKey: values.MASTER_KEY!,
    revealsKeys: values.REVEAL === 'on',
    publicUrl: readServerUrl(values.PUBLIC_URL),
    backupUrl: readServerUrl(values.BACKUP_URL),
    directUrl: readServerUrl(values.DIRECT_URL),
    trustProxy: values.TRUST_PROXY === 'on',
    keepAliveTimeoutMs: values.KEEPALIVE_TIMEOUT_MS,
    maxConnections: values.MAX_CONNECTIONS ?? null,
    maxConnectionsPerAddress: values.MAX_CONNECTIONS_PER_ADDRESS ?? null,
    corsOrigins: readCorsOrigins(values.CORS_ORIGINS ?? '').origins,
    files: Object.freeze({
      maxFileBytes: values.MAX_FILE_BYTES,
      maxFiles: values.MAX_FILES_PER_ACCOUNT,
      maxBytes: values.MAX_FILE_BYTES_PER_ACCOUNT,
      maxLines: values.MAX_BATCH_LINES,
    }),
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT ?? null,
    metricsToken: values.METRICS_TOKEN ?? null,
    adminToken: values.ADMIN_TOKEN ?? null,
    metricsPort: values.METRICS_PORT ?? null,
    alerts: Object.freeze({
      webhookUrl: values.ALERT_WEBHOOK_URL ?? null,
      email: values.ALERT_EMAIL ?? null,
    }),
    expectsWorkers: values.MIN_WORKERS > 0,
    maxUnfinishedBatches: values.MAX_UNFINISHED_BATCHES,
    requestLogDays: values.LOG_RETENTION_DAYS,
    defaultRpm: values.DEFAULT_RPM,
    smtpUrl: values.SMTP_URL ?? null,
    mailFrom: Object.freeze(readMailSender(values.MAIL_FROM)!),
    supportEmail: values.SUPPORT_EMAIL ?? null,
    signup: Object.freeze({
      isOpen: values.SIGNUP === 'on',
      balanceNano: parseRub(values.SIGNUP_BALANCE)!,
      freeRequests: values.SIGNUP_FREE_REQUESTS,
      grantsPerNetwork: values.SIGNUP_GRANTS_PER_NETWORK,
      noGrantDomains: readNoGrantDomains(values.SIGNUP_NO_GRANT_DOMAINS ?? '').domains,
    }),
    captchaMode: values.WEB_CAPTCHA,
    pages: readPageConfig(values),
    tracing: readTracingConfig(values),
  });
}

const readServerUrl = (url: string | undefined): string | null =>
  url === undefined ? null : toServerUrl(url);

const s3Variables = [
  'S3_ENDPOINT',
  'S3_BUCKET',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
] as const;

/**
 * Takes from the running stack's endpoints the variables that the environment leaves unset. The S3 variables come
 * entirely from one source or the other: credentials exported for another bucket do not give access to the embedded one.
 */
export function pickEndpoints(endpoints: Endpoints, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const hasS3 = Boolean(env['S3_ENDPOINT']);
  const isS3 = (name: string): boolean => (s3Variables as readonly string[]).includes(name);
  const unset = endpointVariables.filter((name) => (isS3(name) ? !hasS3 : !env[name]) && endpoints[name]);
  return Object.fromEntries(unset.map((name) => [name, endpoints[name]]));
}

export function endpointsPath(dataDir: string): string {
  return join(dataDir, 'endpoints.json');
}

/**
 * Returns the running stack's endpoints, or an empty object if none is running.
 * @throws ConfigError if the file exists but cannot be read
 */
export function readEndpoints(dataDir: string): Endpoints {
  const path = endpointsPath(dataDir);
  try {
    const endpoints = JSON.parse(readFileSync(path, 'utf8')) as Endpoints | null;
    return typeof endpoints?.pid === 'number' && isAlive(endpoints.pid) ? endpoints : {};
  } catch (error) {
    // The file is replaced atomically, so invalid JSON means that it is damaged and does not show what is running.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    const advice = 'Run this as the user that runs "npm start", or set DATA_DIR to a folder of your own.';
    throw new ConfigError(`${path} cannot be read: ${explainFileError(error, path)}. ${advice}`, {
      cause: error,
    });
  }
}
