import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import type { Environment } from '../../shared/platform/config/config.ts';

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
 * Rejects embedded defaults in production, and an S3_ENDPOINT without its keys.
 * @throws ConfigError that lists everything that is missing
 */
export async function checkEnvironment(env: NodeJS.ProcessEnv, values: Environment): Promise<void> {
  const missing = (names: readonly string[]): string => names.filter((name) => !env[name]).join(', ');
  const missingInProduction = values.NODE_ENV === 'production' ? missing(neededInProduction) : '';
  if (missingInProduction !== '') {
    throw new ConfigError(
      `NODE_ENV=production does not use embedded parts. Set these variables, too: ${missingInProduction}`,
    );
  }
  const missingForS3 =
    values.S3_ENDPOINT === undefined ? '' : missing(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);
  if (missingForS3 !== '')
    throw new ConfigError(`S3_ENDPOINT is set, so set these variables, too: ${missingForS3}`);
  if (values.MONGODB_URL === undefined) return;
  // Import it only here, so that the supervisor usually runs without a driver. Check addresses now, because with a bad
  // one api and worker would fail again and again.
  const { createClient } = await import('../../shared/platform/storage/mongo-client.ts');
  await createClient(values.MONGODB_URL).close();
}
