import { toAsciiDomain } from '../../encoding/mail-domain.ts';

export interface NoGrantDomains {
  /** In lower-case ASCII. */
  readonly domains: ReadonlySet<string>;
  /** Entries that are not domains. */
  readonly wrong: readonly string[];
}

/**
 * Reads a list of mail domains, separated by commas or white space. Each may be written with a leading `@`, `.` or `*.` and a trailing dot,
 * in any case and any script. A top-level domain is accepted.
 */
export function readNoGrantDomains(text: string): NoGrantDomains {
  const domains = new Set<string>();
  const wrong: string[] = [];
  for (const entry of text.split(/[\s,]+/).filter((part) => part !== '')) {
    const domain = toAsciiDomain(entry.replace(/^(?:@|\*\.|\.)/, '').replace(/\.$/, ''));
    if (domain === null) wrong.push(entry);
    else domains.add(domain);
  }
  return { domains, wrong };
}
