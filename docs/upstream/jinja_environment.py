import jinja2

executions = []
environment = jinja2.Environment(
    loader=jinja2.DictLoader({"parts": "{% set number = count() %}{% macro part() %}part{% endmacro %}"})
)
environment.globals["count"] = lambda: executions.append(1)
first = environment.from_string("{% from 'parts' import part %}{{ part() }}")
second = environment.from_string("{% from 'parts' import part %}{{ part() }}", globals={"name": "Ann"})
first.render()
second.render()
print("the imported template was executed", len(executions), "times")
