import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

export interface BoardFile {
  readonly bytes: Buffer;
  readonly contentType: string;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
};

/** The files that the board's page loads. Only files that were in the folder at the start are read. */
export class BoardFiles {
  readonly #folder: string;
  readonly #names: ReadonlySet<string>;

  private constructor(folder: string, names: ReadonlySet<string>) {
    this.#folder = folder;
    this.#names = names;
  }

  static async open(folder: string): Promise<BoardFiles> {
    const entries = await readdir(folder, { recursive: true });
    return new BoardFiles(
      folder,
      new Set(entries.filter((name) => contentTypes[extname(name)] !== undefined)),
    );
  }

  /** @param name relative to the folder. Returns null if there is no such file. */
  async read(name: string): Promise<BoardFile | null> {
    if (!this.#names.has(name)) return null;
    const bytes = await readFile(join(this.#folder, name));
    return { bytes, contentType: contentTypes[extname(name)]! };
  }
}
