import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import type { SiteLanguage, SitePage } from './site-pages.ts';

/** A source file in Vite's manifest. */
interface ManifestEntry {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
  /** Other files, such as fonts. */
  readonly assets?: readonly string[];
}
type Manifest = Readonly<Record<string, ManifestEntry>>;

/** What a page loads before it can be shown. */
export interface PageFiles {
  readonly script: string;
  readonly styles: readonly string[];
  /** Modules that the script would otherwise discover one after the other. */
  readonly modules: readonly string[];
  /** Fonts of headings in the language. Without them at once, a heading keeps the system's font. */
  readonly fonts: readonly string[];
}

const entrySource = 'main.tsx';

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

/** The built application, `dist/web`. Only files that were in it at the start are ever read. */
export class WebBuild {
  readonly #folder: string;
  readonly #manifest: Manifest;
  readonly #names: ReadonlySet<string>;
  readonly #bodies = new Map<string, Promise<PreparedBody>>();

  private constructor(folder: string, manifest: Manifest, names: ReadonlySet<string>) {
    this.#folder = folder;
    this.#manifest = manifest;
    this.#names = names;
  }

  /** Returns null if the application is not built. */
  static async open(folder: string): Promise<WebBuild | null> {
    try {
      const manifest = JSON.parse(await readFile(join(folder, '.vite', 'manifest.json'), 'utf8')) as Manifest;
      const names = await readdir(join(folder, 'assets'));
      const served = names.filter((name) => contentTypes[extname(name)] !== undefined);
      return new WebBuild(folder, manifest, new Set(served));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Returns a file in `assets/` with its compressed forms, or null if there is none with this name. */
  async readAsset(name: string): Promise<PreparedBody | null> {
    if (!this.#names.has(name)) return null;
    let body = this.#bodies.get(name);
    if (body === undefined) {
      body = this.#readAsset(name);
      this.#bodies.set(name, body);
      // A failure is not kept.
      body.catch(() => this.#bodies.delete(name));
    }
    return await body;
  }

  async #readAsset(name: string): Promise<PreparedBody> {
    const path = join(this.#folder, 'assets', name);
    return new PreparedBody(await readFile(path), contentTypes[extname(name)]!, {
      br: () => readFile(`${path}.br`),
      gzip: () => readFile(`${path}.gz`),
    });
  }

  listFiles({ name, access }: Pick<SitePage, 'name' | 'access'>, language: SiteLanguage): PageFiles {
    const sources = [
      entrySource,
      `messages/${language}.ts`,
      ...(access === 'operator' ? ['admin/area.ts', `admin/messages/${language}.ts`] : []),
      `pages/${name}/index.tsx`,
      `pages/${name}/messages.${language}.ts`,
    ];
    const entries = this.#withImports(sources);
    const script = this.#manifest[entrySource]!.file;
    const files = entries.map(({ file }) => file).filter((file) => file !== script);
    return {
      script: `/${script}`,
      styles: unique(entries.flatMap(({ css = [] }) => css)).map((file) => `/${file}`),
      modules: unique(files).map((file) => `/${file}`),
      fonts: (this.#manifest[entrySource]!.assets ?? [])
        .filter((file) => file.endsWith('.woff2') && (language === 'ru' || !file.includes('cyrillic')))
        .map((file) => `/${file}`),
    };
  }

  /** Lists the entries of the sources and of everything that they import statically, each after its imports. */
  #withImports(sources: readonly string[]): ManifestEntry[] {
    const found = new Set<ManifestEntry>();
    const visit = (source: string): void => {
      const entry = this.#manifest[source];
      if (entry === undefined || found.has(entry)) return;
      for (const name of entry.imports ?? []) visit(name);
      found.add(entry);
    };
    for (const source of sources) visit(source);
    return [...found];
  }
}

const unique = (names: readonly string[]): string[] => [...new Set(names)];
