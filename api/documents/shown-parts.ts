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
/** Each reference of a part is resolved against its name. No program writes nearly as long names. */
const maxNameLength = 1_024;
const mayShow = /<(?:[^\s<>:]+:)?(?:sheet|sldId|itemref|altChunk|Relationship)\b/;

/**
 * Counts how many times a document shows its parts. Readers read a part each time it is shown. Elements refer to parts
 * by ids, which separate tables map to part names. Several ids may refer to the same part.
 */
export class ShownParts {
  /** The ids that a part shows, by the part's name. */
  readonly #shownIds = new Map<string, string[]>();
  /** The parts that ids refer to, by the name of the part that uses the ids. */
  readonly #targets = new Map<string, Map<string, string>>();

  /** @throws RangeError if an id refers to two parts, or if the part's name is too long */
  add(partName: string, markup: string): void {
    if (!mayShow.test(markup)) return;
    if (partName.length > maxNameLength) throw new RangeError('the name of a part is too long');
    const shownIds: string[] = [];
    const name = partName.toLowerCase();
    // `xl/_rels/workbook.xml.rels` is the table for `xl/workbook.xml`. A book's table is in the part itself.
    const [, folder, owner] = /^(.*?)_rels\/([^/]*)\.rels$/.exec(name) ?? [];
    const referrer = owner === undefined ? name : `${folder}${owner}`;
    walkXml(markup, {
      open: (element, attributes) => {
        if (element === 'Relationship') this.#addTarget(referrer, attributes, { id: 'Id', target: 'Target' });
        else if (element === 'item') this.#addTarget(referrer, attributes, { id: 'id', target: 'href' });
        const referenceName = referenceAttributes[element];
        if (referenceName === undefined) return;
        for (const [attribute, value] of listAttributes(attributes))
          if (attribute === referenceName) shownIds.push(value);
      },
    });
    if (shownIds.length === 0) return;
    const known = this.#shownIds.get(name);
    if (known === undefined) this.#shownIds.set(name, shownIds);
    else for (const id of shownIds) known.push(id);
  }

  /** Number of times that the most frequently shown part is shown; 1 in a normal document. */
  get maxTimes(): number {
    let max = 1;
    for (const [referrer, ids] of this.#shownIds) {
      const times = new Map<string, number>();
      for (const id of ids) {
        const part = this.#targets.get(referrer)?.get(id) ?? id;
        const count = (times.get(part) ?? 0) + 1;
        times.set(part, count);
        max = Math.max(max, count);
      }
    }
    return max;
  }

  #addTarget(
    referrer: string,
    attributes: string,
    names: { readonly id: string; readonly target: string },
  ): void {
    const id = readAttribute(attributes, names.id);
    const target = readAttribute(attributes, names.target);
    if (id === null || target === null) return;
    const part = resolve(referrer, target);
    const targets = this.#targets.get(referrer) ?? new Map<string, string>();
    const known = targets.get(id);
    if (known !== undefined && known !== part) throw new RangeError('an id stands for two parts');
    this.#targets.set(referrer, targets.set(id, part));
  }
}

/** Normalizes a part name, so that all spellings of a part yield the same name. */
function resolve(referrer: string, target: string): string {
  try {
    const { pathname } = new URL(target, `http://archive/${encodeURI(referrer)}`);
    return decodeURIComponent(pathname).toLowerCase();
  } catch {
    return target.toLowerCase();
  }
}
