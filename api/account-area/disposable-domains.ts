import { disposableEmailBlocklistSet } from 'disposable-email-domains-js';
import { listParentDomains } from '../../shared/encoding/mail-domain.ts';

let listed: ReadonlySet<string> | null = null;

/** Loads the list when it is first needed, which takes about 4 ms and 0.8 MB. */
const loadList = (): ReadonlySet<string> => (listed ??= disposableEmailBlocklistSet());

/**
 * Whether an address belongs to a provider of disposable addresses, or to one of the operator's own `domains`. The
 * parents of its domain count as well: such providers give out subdomains.
 * @param email normalised
 */
export function isDisposable(email: string, domains: ReadonlySet<string>): boolean {
  const disposable = loadList();
  const parents = listParentDomains(email.slice(email.lastIndexOf('@') + 1));
  return parents.some((domain) => domains.has(domain) || disposable.has(domain));
}
