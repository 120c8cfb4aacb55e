import { listAttributes, readAttribute, walkXml } from './walk-xml.ts';

/** Elements that show another part of the document, by which they name it: sheets, slides, chapters, inserted documents. */
const showing: Readonly<Record<string, string>> = {
  sheet: 'id',
  sldId: 'id',
  itemref: 'idref',
  altChunk: 'id',
};
const mayShow = /<(?:[^\s<>:]+:)?(?:sheet|sldId|itemref|altChunk|Relationship)\b/;

/**
 * A document may show one of its parts many times, where each is to be shown once, and readers read it as often. Ids name
 * parts through tables of their own: several may name the same one.
 */
export class ShownParts {
  /** The ids that a part shows, by the part's name. */
  readonly #shown = new Map<string, string[]>();
  /** What ids stand for, by the name of the part that they are used in. */
  readonly #targets = new Map<string, Map<string, string>>();

  /** Throws a RangeError where an id stands for two parts. */
  add(partName: string, markup: string): void {
    if (!mayShow.test(markup)) return;
    const shown: string[] = [];
    const name = partName.toLowerCase();
    // `xl/_rels/workbook.xml.rels` is the table of `xl/workbook.xml`; a book's is in the part itself.
    const [, folder, owner] = /^(.*?)_rels\/([^/]*)\.rels$/.exec(name) ?? [];
    const user = owner === undefined ? name : `${folder}${owner}`;
    walkXml(markup, {
      open: (element, attributes) => {
        if (element === 'Relationship') this.#addTarget(user, attributes, { id: 'Id', target: 'Target' });
        else if (element === 'item') this.#addTarget(user, attributes, { id: 'id', target: 'href' });
        const wanted = showing[element];
        if (wanted === undefined) return;
        for (const [attribute, value] of listAttributes(attributes))
          if (attribute === wanted) shown.push(value);
      },
    });
    if (shown.length > 0) this.#shown.set(name, [...(this.#shown.get(name) ?? []), ...shown]);
  }

  /** How often the part is shown that is shown most: once, in a document as it should be. */
  get mostTimes(): number {
    let most = 1;
    for (const [user, ids] of this.#shown) {
      const times = new Map<string, number>();
      for (const id of ids) {
        const part = this.#targets.get(user)?.get(id) ?? id;
        const more = (times.get(part) ?? 0) + 1;
        times.set(part, more);
        most = Math.max(most, more);
      }
    }
    return most;
  }

  #addTarget(
    user: string,
    attributes: string,
    names: { readonly id: string; readonly target: string },
  ): void {
    const id = readAttribute(attributes, names.id);
    const target = readAttribute(attributes, names.target);
    if (id === null || target === null) return;
    const part = resolve(user, target);
    const targets = this.#targets.get(user) ?? new Map<string, string>();
    const known = targets.get(id);
    if (known !== undefined && known !== part) throw new RangeError('an id stands for two parts');
    this.#targets.set(user, targets.set(id, part));
  }
}

/** The same part has the same name here, whichever way it is written. */
function resolve(user: string, target: string): string {
  try {
    const { pathname } = new URL(target, `http://archive/${encodeURI(user)}`);
    return decodeURIComponent(pathname).toLowerCase();
  } catch {
    return target.toLowerCase();
  }
}
