import { ConfigError } from '../../shared/runtime/config-error.ts';
import type { readEnvironment } from '../../shared/config/config.ts';

const neededInProduction = [
  'REDIS_URL',
  'MONGODB_URL',
  'S3_ENDPOINT',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'SMTP_URL',
  'MASTER_KEY',
] as const;

/**
 * Refuses embedded defaults where real money is at stake, and an operator's S3 server without its keys.
 * @throws ConfigError that names everything that is missing, at once
 */
export async function checkEnvironment(
  env: NodeJS.ProcessEnv,
  values: ReturnType<typeof readEnvironment>,
): Promise<void> {
  const missing = (names: readonly string[]): string => names.filter((name) => !env[name]).join(', ');
  const inProduction = values.NODE_ENV === 'production' ? missing(neededInProduction) : '';
  if (inProduction !== '') {
    throw new ConfigError(
      `NODE_ENV=production takes no embedded parts. Set these variables too: ${inProduction}`,
    );
  }
  const ofS3 =
    values.S3_ENDPOINT === undefined ? '' : missing(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);
  if (ofS3 !== '') throw new ConfigError(`S3_ENDPOINT is set, so set these variables too: ${ofS3}`);
  if (values.MONGODB_URL === undefined) return;
  // Imported only here, so that the supervisor usually runs without a driver. Roles would fail on a bad address again
  // and again.
  const { createClient } = await import('../../shared/storage/mongo-client.ts');
  await createClient(values.MONGODB_URL).close();
}
