import type { ComponentChildren } from 'preact';
import { SiteLink } from '../../frame/site-link.tsx';

/** Several links, as parts of a sentence. */
export const enumerate = (
  ids: readonly string[],
  hrefOf: (id: string) => string,
  nameOf: (id: string) => string = (id) => id,
): ComponentChildren[] =>
  ids.flatMap((id, i) => [
    ...(i === 0 ? [] : [', ']),
    <SiteLink key={id} href={hrefOf(id)}>
      {nameOf(id)}
    </SiteLink>,
  ]);
