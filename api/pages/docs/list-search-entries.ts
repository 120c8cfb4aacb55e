import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import type { Description, OperationObject } from '../../description/description.ts';
import type { SearchEntry } from '../docs-data.ts';
import type { SiteLanguage } from '../languages.ts';
import type { DocsTexts } from './docs-texts.ts';
import type { Guide } from './docs.ts';
import { listFields, type Field, type Schemas } from './list-fields.ts';
import type { Chapter } from './render-reference.ts';

/** Lists operations by path, summary and fields, error codes, and the sections of guides. */
export function listSearchEntries(
  { components }: Description,
  chapters: readonly Chapter[],
  guides: readonly Guide[],
  texts: DocsTexts,
): SearchEntry[] {
  return [
    ...guides.flatMap(listGuide),
    ...chapters.flatMap(({ name, entries }) =>
      entries.map(({ method, path, operation }) => ({
        href: `/docs#${operation.operationId}`,
        title: operation.summary,
        place: name,
        text: [
          method.toUpperCase(),
          path,
          operation.operationId,
          ...namesOf(operation, components.schemas),
        ].join(' '),
      })),
    ),
    ...(Object.keys(errorKinds) as ErrorCode[]).map((code) => listError(code, texts.language, texts.errors)),
  ];
}

const listGuide = ({ name, title, sections }: Guide): SearchEntry[] =>
  sections.map((section) => ({
    href: `/docs/${name}${section.id === '' ? '' : `#${section.id}`}`,
    title: section.title,
    place: title,
    text: section.text,
  }));

const listError = (code: ErrorCode, language: SiteLanguage, place: string): SearchEntry => ({
  href: `/docs#error-${code}`,
  title: code,
  place,
  text: `${errorKinds[code].status} ${errorKinds[code][language]}`,
});

/** Names of parameters and of all fields, each once. */
function namesOf({ parameters = [], requestBody, responses }: OperationObject, schemas: Schemas): string[] {
  const media = [requestBody?.content ?? {}, ...Object.values(responses).map(({ content }) => content)];
  const fields = media
    .flatMap((content) => Object.values(content))
    .flatMap(({ schema }) => listFields(schema.contentSchema ?? schema, schemas));
  return [...new Set([...parameters.map(({ name }) => name), ...fields.flatMap(withInner)])];
}

const withInner = ({ name, fields }: Field): string[] => [name, ...fields.flatMap(withInner)];
