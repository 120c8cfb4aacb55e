import { fileURLToPath } from 'node:url';
import type { ApiMiddleware } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';
import { readGuides } from '../docs/read-guides.ts';
import { serveSite } from './serve-site.ts';
import { WebBuild } from './web-build.ts';

/** Seen from the compiled file. */
const buildFolder = fileURLToPath(new URL('../../../web', import.meta.url));
const guidesFolder = fileURLToPath(new URL('../../../../docs/guides', import.meta.url));

/** Opens the pages of the site. Returns null if none are served. */
export async function openSite(services: Services): Promise<ApiMiddleware | null> {
  if (!services.config.pages.isServed) return null;
  const [build, guides] = await Promise.all([WebBuild.open(buildFolder), readGuides(guidesFolder)]);
  if (build === null) services.log.warn('pages are not built: run "npm run build"');
  if (guides === null) services.log.warn({ folder: guidesFolder }, 'guides of the pages are missing');
  return build === null || guides === null ? null : serveSite(services, build, guides);
}
