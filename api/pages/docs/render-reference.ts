import type { Description } from '../../description/description.ts';
import { chapterNames, type DocsTexts } from './docs-texts.ts';
import { formatText } from './format-text.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { renderErrorChapter } from './render-error-chapter.ts';
import { renderOverview } from './render-overview.ts';
import { renderOperation, type Entry } from './render-operation.ts';

export interface Chapter {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly entries: readonly Entry[];
}

/** Renders the API description. */
export function renderReference(description: Description, texts: DocsTexts): Html {
  const serverUrl = description.servers[0]?.url ?? '';
  const { schemas } = description.components;
  return html`${renderOverview(description, texts)}
  ${listChapters(description, texts).map(
    ({ id, name, description: text, entries }) =>
      html`<section class="chapter" id="${id}">
        <h2>${name}</h2>
        <div class="lead" lang="en">${formatText(text)}</div>
        ${entries.map((entry) => renderOperation(entry, serverUrl, schemas, texts))}
      </section> `,
  )}
  ${renderErrorChapter(description, texts)}`;
}

export function listChapters({ tags, paths }: Description, texts: DocsTexts): Chapter[] {
  const entries = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
  return tags.map(({ name, description }) => ({
    id: name.toLowerCase().replaceAll(' ', '-'),
    name: texts.language === 'ru' ? (chapterNames[name] ?? name) : name,
    description,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
}
