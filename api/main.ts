import { loadConfig } from '../shared/runtime/config.ts';
import { runProcess } from '../shared/runtime/lifecycle.ts';
import { createLogger } from '../shared/runtime/logger.ts';
import { startApi } from './server.ts';

await runProcess('api', async () => {
  const config = loadConfig(process.env);
  const log = createLogger('api', config.logLevel);
  return { running: await startApi(config, process.env, log), log };
});
