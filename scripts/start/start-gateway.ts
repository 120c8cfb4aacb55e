import { relative, resolve } from 'node:path';
import { readFile } from 'node:fs/promises';
import type { Model } from '../../shared/contract/models.ts';
import { readEnvironment, type Endpoints, type Environment } from '../../shared/platform/config/config.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { toServerUrl } from '../../shared/platform/config/server-url.ts';
import { checkEnvironment } from './check-environment.ts';
import { formatMs, type ConsoleOutput } from './console-output.ts';
import { lockDataDir, type DataDirLock } from './data-dir-lock.ts';
import { ensureDemoAccount } from './demo-account.ts';
import type { DemoAccount } from './find-demo-account.ts';
import { removeEndpoints, writeEndpoints } from './endpoints-file.ts';
import { Guardian } from './guardian.ts';
import { checkPort, getJson, localUrl } from './loopback.ts';
import { apiPart, chooseMongo, chooseRedis, chooseS3, chooseSmtp, type Part } from './parts.ts';
import { endProcesses } from '../processes/process-identity.ts';
import { describeExposure } from './prepare-data-dir.ts';
import { loadSecrets } from './secrets-file.ts';
import { Stack } from './stack.ts';
import type { StartOptions } from './start-options.ts';
import { checkDemandAccess, createWorkers } from './start-workers.ts';
import { stopOnSignals } from './stop-on-signals.ts';
import { waitForHealth } from './wait-for-health.ts';
import { formatWelcome } from './welcome.ts';
import { unreadableCatalog } from '../../shared/catalog/catalog-store.ts';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';

/**
 * Runs the whole gateway on this machine until it receives a signal. Then the process exits. Resolves when everything
 * is running, or, if workers start and stop by demand, when no more of them do.
 * @throws ConfigError, PartFailed; in both cases, no part keeps running
 */
export async function startGateway(
  env: NodeJS.ProcessEnv,
  options: StartOptions,
  output: ConsoleOutput,
): Promise<void> {
  const values = readEnvironment(env);
  checkDemandAccess(options, values);
  await checkEnvironment(env, values);
  await checkCatalogFile(values.CATALOG, env);
  const dataDir = resolve(values.DATA_DIR);
  const lock = lockDataDir(dataDir);
  const guardian = new Guardian();
  const stack = new Stack({ output, guardian, lock, dataDir });
  const stopping = new AbortController();
  process.once('exit', () => {
    removeEndpoints(dataDir);
    lock.release();
  });
  stopOnSignals(env, {
    onStop(reason) {
      stopping.abort();
      stopAndExit(stack, guardian, output, reason).catch((error: unknown) => {
        output.print(`Stopping failed: ${String(error)}`);
        process.exit(1);
      });
    },
    onKill() {
      // The guardian ends the remaining parts once this process is gone.
      stack.kill();
      process.exit(130);
    },
  });

  try {
    await endLeftovers(lock, output);
    const port = await checkPorts(values);
    const exposure = describeExposure(dataDir);
    const secrets = loadSecrets(dataDir);
    guardian.start();
    output.print(`model-gateway, with its data in ${relative(process.cwd(), dataDir) || '.'}\n`);
    if (exposure !== null) output.printEvent('data', exposure, 'yellow');

    const context = { env, values, dataDir, secrets };
    const parts = {
      redis: await chooseRedis(context),
      mongodb: await chooseMongo(context),
      s3: chooseS3(context),
      smtp: chooseSmtp(context),
    };
    await Promise.all(Object.entries(parts).map(([name, part]) => startPart(stack, output, name, part)));

    const endpoints: Endpoints = {
      ...parts.redis.endpoints(),
      ...parts.mongodb.endpoints(),
      ...parts.s3.endpoints(),
      ...parts.smtp.endpoints(),
      MASTER_KEY: values.MASTER_KEY ?? secrets.masterKey,
      // Without this, `admin` would store the secrets of new keys although REVEAL is off here.
      REVEAL: values.REVEAL,
      // Makes a separate worker serve the same models, wherever it is started.
      CATALOG: resolve(values.CATALOG),
      // Makes a separate worker send the same mails.
      SIGNUP: values.SIGNUP,
      // Otherwise a separate worker would set another retention.
      LOG_RETENTION_DAYS: String(values.LOG_RETENTION_DAYS),
      ...(values.SUPPORT_EMAIL === undefined ? {} : { SUPPORT_EMAIL: values.SUPPORT_EMAIL }),
    };
    const isProduction = values.NODE_ENV === 'production';
    // An operator's secrets must not be written to a file. In production, each process gets them from its environment.
    if (!isProduction) writeEndpoints(dataDir, endpoints);
    const { pid: _, ...variables } = endpoints;
    const childEnv = {
      ...env,
      ...variables,
      DATA_DIR: dataDir,
      HOST: values.HOST,
      PORT: String(port),
      // Log files are JSON lines. The console formats them itself.
      LOG_FORMAT: 'json',
    };

    output.muteRoutine();
    const url = localUrl(values.HOST, port);
    const isDemo =
      !isProduction && (values.DEMO_ACCOUNT ?? (parts.mongodb.spec === null ? 'off' : 'on')) === 'on';
    const workers = await createWorkers({ options, values, stack, env: childEnv, apiUrl: url, output });
    const [demo] = await Promise.all([
      isDemo ? findDemo(dataDir, childEnv, output, stopping.signal) : null,
      startRoles(
        [() => stack.run(apiPart(options.processes, childEnv), 0), () => workers.start()],
        output,
        url,
        stopping.signal,
      ),
    ]);
    const models = ((await getJson(`${url}/v1/models`)) as { data?: Model[] } | null)?.data ?? [];
    const publicUrl = values.PUBLIC_URL === undefined ? url : toServerUrl(values.PUBLIC_URL);
    const tookMs = performance.now();
    output.print('');
    output.print(
      formatWelcome({
        baseUrl: `${publicUrl}/v1`,
        demo,
        models,
        dataDir: values.DATA_DIR,
        hasOutbox: parts.smtp.spec !== null,
        hasPages: env['PAGES'] !== 'off',
        hasAdminToken: (env['ADMIN_TOKEN'] ?? '') !== '',
        tookMs,
      }),
    );
    output.unmuteRoutine();
    await workers.scale(stopping.signal);
  } catch (error) {
    // A stop was requested during startup. It exits the process.
    if (stopping.signal.aborted) return;
    await stack.stop();
    guardian.stop();
    throw error;
  }
}

/**
 * Returns the port of the api. Checks that of the metrics, too.
 * @throws ConfigError
 */
async function checkPorts({ HOST, PORT, METRICS_PORT }: Environment): Promise<number> {
  if (METRICS_PORT !== undefined && METRICS_PORT !== 0) {
    if (METRICS_PORT === PORT)
      throw new ConfigError(`PORT and METRICS_PORT are both ${PORT}. Set one of them to another port.`);
    await checkPort(HOST, METRICS_PORT, 'METRICS_PORT');
  }
  return await checkPort(HOST, PORT);
}

async function startPart(stack: Stack, output: ConsoleOutput, name: string, part: Part): Promise<void> {
  const startedMs = performance.now();
  if (part.spec !== null) await stack.run(part.spec, part.stage);
  const took = part.spec === null ? null : performance.now() - startedMs;
  output.printPart(name, part.spec === null ? `as configured: ${part.describe()}` : part.describe(), took);
}

async function startRoles(
  starts: readonly (() => Promise<unknown>)[],
  output: ConsoleOutput,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  await Promise.all(starts.map((start) => start()));
  const progress = {
    onListening: () => output.printPart('api', `listens on ${url}`, performance.now() - startedMs),
    onWorkers: () => output.printPart('worker', 'takes work', performance.now() - startedMs),
    onWaiting: (missing: string) => output.print(`  … still starting: ${missing}`),
  };
  await waitForHealth(url, progress, signal);
}

/** Does not throw, because the gateway works without its demo account. */
async function findDemo(
  dataDir: string,
  env: NodeJS.ProcessEnv,
  output: ConsoleOutput,
  signal: AbortSignal,
): Promise<DemoAccount | null> {
  try {
    return await ensureDemoAccount(dataDir, env);
  } catch (error) {
    // The command was stopped, so this is not a failure.
    if (signal.aborted) return null;
    output.print(
      `  The demo account could not be created: ${error instanceof Error ? error.message : String(error)}`,
    );
    return null;
  }
}

/** Ends the parts of a supervisor that was killed together with its guardian. */
async function endLeftovers({ leftovers }: DataDirLock, output: ConsoleOutput): Promise<void> {
  const names = Object.keys(leftovers);
  if (names.length === 0) return;
  output.print(`Stopping processes that an earlier start left running: ${names.join(', ')}`);
  const isRole = (name: string): boolean => /^(?:api|worker)\b/.test(name);
  const pick = (isIncluded: (name: string) => boolean) =>
    names.filter(isIncluded).map((name) => leftovers[name]!);
  await endProcesses(pick(isRole), 5_000);
  await endProcesses(
    pick((name) => !isRole(name) && name !== 'redis'),
    10_000,
  );
  await endProcesses(
    pick((name) => name === 'redis'),
    10_000,
  );
}

async function stopAndExit(
  stack: Stack,
  guardian: Guardian,
  output: ConsoleOutput,
  reason: string,
): Promise<void> {
  const startedMs = performance.now();
  output.print(`\nStopping (${reason}); press Ctrl-C again to stop immediately.`);
  await stack.stop();
  guardian.stop();
  output.print(`Stopped in ${formatMs(performance.now() - startedMs)}.`);
  process.exit(0);
}

/**
 * Reads the catalog before anything starts. Without a valid one, api and worker would be restarted forever.
 * @throws ConfigError that lists every problem with its position
 */
async function checkCatalogFile(path: string, env: NodeJS.ProcessEnv): Promise<void> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw unreadableCatalog(resolve(path), error);
  }
  parseCatalog(text, { env, fileName: path, today: new Date().toISOString().slice(0, 10) });
}
