import { SiteLink } from '../frame/site-link.tsx';

/** Enough of an id to tell it from others on a page. */
export const shortId = (id: string): string => (id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);

/** @param name what to show instead of the id */
export const AccountLink = ({ id, name = null }: { readonly id: string; readonly name?: string | null }) => (
  <SiteLink href={`/admin/accounts/${encodeURIComponent(id)}`} class="id-link">
    {name === null ? <code title={id}>{shortId(id)}</code> : <span title={id}>{name}</span>}
  </SiteLink>
);

/** Opens a request over the list that the address filters, or over the list of all. */
export const RequestLink = ({ id, href }: { readonly id: string; readonly href?: string }) => (
  <SiteLink href={href ?? `/admin/requests?id=${encodeURIComponent(id)}`} class="id-link">
    <code title={id}>{shortId(id)}</code>
  </SiteLink>
);

export const ModelLink = ({ id }: { readonly id: string }) => (
  <SiteLink href={`/admin/models?model=${encodeURIComponent(id)}`} class="id-link">
    {id}
  </SiteLink>
);

export const JobLink = ({ id }: { readonly id: string }) => (
  <SiteLink href={`/admin/work?job=${encodeURIComponent(id)}`} class="id-link">
    <code title={id}>{shortId(id)}</code>
  </SiteLink>
);

export const BatchLink = ({ id }: { readonly id: string }) => (
  <SiteLink href={`/admin/work?batch=${encodeURIComponent(id)}`} class="id-link">
    <code title={id}>{shortId(id)}</code>
  </SiteLink>
);

/** @param name what to show instead of the id, such as the address */
export const UserLink = ({ id, name }: { readonly id: string; readonly name?: string | null }) => (
  <SiteLink href={`/admin/users?user=${encodeURIComponent(id)}`} class="id-link">
    {name ?? <code title={id}>{shortId(id)}</code>}
  </SiteLink>
);

/** The changes of operators to something. @param resource its type, a colon, and its id: `upstream:azure` */
export const auditHref = (resource: string): string => `/admin/audit?${new URLSearchParams({ resource })}`;
