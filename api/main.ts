import { loadConfig } from '../shared/runtime/config.ts';
import { runProcess } from '../shared/runtime/lifecycle.ts';
import { createLogger } from '../shared/runtime/logger.ts';
import { refuseArguments } from '../shared/runtime/refuse-arguments.ts';

await runProcess('api', async () => {
  refuseArguments(process.argv.slice(2), 'npm run api');
  const config = loadConfig(process.env);
  const log = createLogger('api', config.logLevel);
  // Node opens all modules that it finds at one time together. Loaded in two stages, a process starts with 256 files.
  const { startApi } = await import('./server.ts');
  return { running: await startApi(config, process.env, log), log };
});
