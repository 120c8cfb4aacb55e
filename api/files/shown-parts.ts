import { listAttributes, readAttribute, walkXml } from './walk-xml.ts';

/**
 * Elements that show another part of the document (sheets, slides, chapters, inserted documents), and their reference
 * attribute.
 */
const referenceAttributes: Readonly<Record<string, string>> = {
  sheet: 'id',
  sldId: 'id',
  itemref: 'idref',
  altChunk: 'id',
};
const mayShow = /<(?:[^\s<>:]+:)?(?:sheet|sldId|itemref|altChunk|Relationship)\b/;

/**
 * Counts how many times a document shows its parts. Readers read a part each time it is shown. Elements refer to parts
 * by ids, which separate tables map to part names. Several ids may refer to the same part.
 */
export class ShownParts {
  /** The ids that a part shows, by the part's name. */
  readonly #shown = new Map<string, string[]>();
  /** The parts that ids refer to, by the name of the part that uses the ids. */
  readonly #targets = new Map<string, Map<string, string>>();

  /** @throws RangeError if an id refers to two parts */
  add(partName: string, markup: string): void {
    if (!mayShow.test(markup)) return;
    const shown: string[] = [];
    const name = partName.toLowerCase();
    // `xl/_rels/workbook.xml.rels` is the table for `xl/workbook.xml`. A book's table is in the part itself.
    const [, folder, owner] = /^(.*?)_rels\/([^/]*)\.rels$/.exec(name) ?? [];
    const user = owner === undefined ? name : `${folder}${owner}`;
    walkXml(markup, {
      open: (element, attributes) => {
        if (element === 'Relationship') this.#addTarget(user, attributes, { id: 'Id', target: 'Target' });
        else if (element === 'item') this.#addTarget(user, attributes, { id: 'id', target: 'href' });
        const referenceName = referenceAttributes[element];
        if (referenceName === undefined) return;
        for (const [attribute, value] of listAttributes(attributes))
          if (attribute === referenceName) shown.push(value);
      },
    });
    if (shown.length > 0) this.#shown.set(name, [...(this.#shown.get(name) ?? []), ...shown]);
  }

  /** Number of times that the most frequently shown part is shown; 1 in a normal document. */
  get maxTimes(): number {
    let max = 1;
    for (const [user, ids] of this.#shown) {
      const times = new Map<string, number>();
      for (const id of ids) {
        const part = this.#targets.get(user)?.get(id) ?? id;
        const count = (times.get(part) ?? 0) + 1;
        times.set(part, count);
        max = Math.max(max, count);
      }
    }
    return max;
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

/** Normalizes a part name, so that all spellings of a part yield the same name. */
function resolve(user: string, target: string): string {
  try {
    const { pathname } = new URL(target, `http://archive/${encodeURI(user)}`);
    return decodeURIComponent(pathname).toLowerCase();
  } catch {
    return target.toLowerCase();
  }
}
