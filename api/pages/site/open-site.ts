import { fileURLToPath } from 'node:url';
import type { ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { serveSite } from './serve-site.ts';
import { WebBuild } from './web-build.ts';

/** Seen from the compiled file. */
const buildFolder = fileURLToPath(new URL('../../../web', import.meta.url));

/** Opens the pages of the site. Returns null if none are served. */
export async function openSite(services: Services): Promise<ApiMiddleware | null> {
  if (!services.config.pages.isServed) return null;
  const build = await WebBuild.open(buildFolder);
  if (build === null) services.log.warn('pages are not built: run "npm run build"');
  return build === null ? null : serveSite(services, build);
}
