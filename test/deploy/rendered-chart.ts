import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, parseAllDocuments } from 'yaml';
import { objectTypes, type Kind, type ObjectOf } from '../support/kubernetes-types.ts';

/** What Helm makes of the chart (deploy/helm/render.sh), for each file of values in fixtures/values/. */

export const chart = 'deploy/helm/model-gateway';
export const fixtures = 'test/deploy/fixtures';
const ajv = new Ajv2020({ allErrors: true, strictTypes: false });
const validators = Object.fromEntries(
  Object.entries(objectTypes).map(([kind, type]) => [kind, ajv.compile(type)]),
);

interface AnyObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

export class Rendered {
  readonly name: string;
  readonly text: string;
  readonly values: Record<string, unknown>;
  readonly objects: readonly AnyObject[];
  readonly problems: readonly string[];

  constructor(name: string) {
    this.name = name;
    this.text = readFileSync(join(fixtures, `${name}.yaml`), 'utf8');
    this.values = parse(readFileSync(join(fixtures, 'values', `${name}.yaml`), 'utf8')) as never;
    const documents = parseAllDocuments(this.text, { strict: true, uniqueKeys: true, stringKeys: true });
    this.objects = (documents as { toJS(): unknown }[]).map((one) => one.toJS() as AnyObject);
    this.problems = [
      ...(documents as { errors: Error[]; warnings: Error[] }[]).flatMap(({ errors, warnings }) =>
        [...errors, ...warnings].map(({ message }) => message),
      ),
      ...this.objects.flatMap((object) => {
        const validate = validators[object.kind];
        if (validate === undefined) return [`${object.kind}: an unknown kind`];
        validate(object);
        return (validate.errors ?? []).map(
          ({ instancePath, message, params }) =>
            `${object.kind} ${object.metadata.name} ${instancePath} ${message} ${JSON.stringify(params)}`,
        );
      }),
    ];
  }

  list<K extends Kind>(kind: K): ObjectOf<K>[] {
    return this.objects.filter((object) => object.kind === kind) as unknown as ObjectOf<K>[];
  }

  /** The object of a kind for the api or the workers. */
  get<K extends Kind>(kind: K, role: 'api' | 'worker'): ObjectOf<K> {
    const found = this.list(kind).filter(
      ({ metadata }) => metadata.labels['app.kubernetes.io/component'] === role,
    );
    if (found.length !== 1) throw new Error(`${this.name}: ${found.length} of ${kind} for ${role}`);
    return found[0]!;
  }
}

export const names = ['default', 'everything', 'fixed', 'from-zero'] as const;
export const rendered = Object.fromEntries(names.map((name) => [name, new Rendered(name)])) as Record<
  (typeof names)[number],
  Rendered
>;
export const all = Object.values(rendered);
export const roles = ['api', 'worker'] as const;

export const podOf = (fixture: Rendered, role: 'api' | 'worker') => {
  const { template } = fixture.get('Deployment', role).spec;
  return { ...template, container: template.spec.containers[0]! };
};
export const envOf = (fixture: Rendered, role: 'api' | 'worker') =>
  new Map(podOf(fixture, role).container.env.map((variable) => [variable.name, variable]));

/** All files of the chart that Helm reads, and the values, as render.sh lists them. */
export function digestOf(values: string): string {
  const files = readdirSync(chart, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'README.md')
    .map((entry) => join(entry.parentPath, entry.name));
  const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
  const lines = [...files, values].toSorted().map((path) => `${sha256(readFileSync(path))}  ${path}\n`);
  return sha256(lines.join(''));
}
