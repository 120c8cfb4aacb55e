import type { ComponentChildren } from 'preact';
import { EmptyState } from '../ui/states.tsx';
import { SiteLink } from './site-link.tsx';

/** What to see where an API account is needed, and the way to the first one. */
export const NoAccount = ({
  title,
  action,
  children,
}: {
  readonly title: string;
  readonly action: string;
  readonly children: ComponentChildren;
}) => (
  <EmptyState
    title={title}
    action={
      <SiteLink class="button primary medium" href="/keys">
        {action}
      </SiteLink>
    }
  >
    {children}
  </EmptyState>
);
